"""The models that the settings dialog offers."""

from __future__ import annotations

from app.qt.settings.controls import ModelChoice
from app.translation import Translator
from inference.byte_size import size_text


def model_choices(translator: Translator) -> list[ModelChoice]:
    """The catalog: those that are here first. Looks at the disk, not at the network."""
    from inference.store.model_store import ModelStore

    tr = translator.tr
    here, elsewhere = [], []
    for stored in ModelStore().list():
        entry = stored.entry
        size = stored.num_bytes or entry.num_bytes or 0
        parts = [entry.id, size_text(size) if size else tr("about {size}", size=size_text(entry.about_bytes))]
        if stored.path is None:
            elsewhere.append(ModelChoice(entry.id, " · ".join([*parts, tr("not downloaded")])))
        else:
            here.append(ModelChoice(entry.id, " · ".join(parts)))
    return [*here, *elsewhere]

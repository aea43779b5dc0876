"""Which full-screen programs may need the GPU's memory for themselves.

No system tells a game from a film. So every program counts as one that needs it, but for those that are known to show
films, pages, slides or text; a player that is not in the list costs a reload at the next action, no more.
"""

from __future__ import annotations

import re

# Words of window classes on X11 and of file names on Windows, lower case.
_PLAYERS = """mpv vlc totem showtime celluloid smplayer mplayer dragon haruna kodi clapper wmplayer mpc potplayer
    potplayermini64 video netflix plex"""
_BROWSERS = """firefox chrome chromium brave vivaldi opera msedge edge epiphany falkon konqueror librewolf navigator
    zen"""
_READERS = """evince okular papers zathura xpdf acrobat acrord32 sumatrapdf soffice libreoffice powerpnt impressive eog
    loupe gwenview feh nomacs winword excel onenote"""
_WORK = """code codium jetbrains emacs gvim nvim kate gedit zoom teams slack discord skype xfreerdp remmina vinagre
    mstsc viewer explorer"""
_HARMLESS = frozenset(f"{_PLAYERS} {_BROWSERS} {_READERS} {_WORK}".split())


def may_need_gpu(program: str) -> bool:
    """Whether a program that fills the screen may want the GPU's memory.

    Args:
        program: window class or file name; "" where unknown.
    """
    return _HARMLESS.isdisjoint(re.split(r"[^a-z0-9]+", program.lower()))

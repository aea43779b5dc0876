"""The API's description in the OpenAPI format, made out of the models that check its requests."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from inference.gateway.schema import ChatRequest, CompletionRequest, LoadRequest, UnloadRequest

Json = dict[str, Any]

_BODIES: dict[str, type[BaseModel]] = {
    "/v1/chat/completions": ChatRequest,
    "/v1/completions": CompletionRequest,
    "/v1/load": LoadRequest,
    "/v1/unload": UnloadRequest,
}
_READINGS = {
    "/health": ("Whether the server is there, and what its engine does.", "application/json"),
    "/openapi.json": ("This description.", "application/json"),
    "/metrics": ("Figures for Prometheus.", "text/plain"),
    "/v1/models": ("The models on this machine.", "application/json"),
    "/v1/models/{model}": ("One of them.", "application/json"),
}
_ERRORS = {
    400: "Not JSON, or something that this server does not support; param names the field.",
    401: "The API key is missing or wrong.",
    403: "A host or a web page that may not call.",
    404: "No such path or model.",
    408: "The body did not come in time.",
    409: "Something else was asked of the engine meanwhile.",
    413: "The body is too large.",
    415: "The body is not application/json, or it is packed.",
    422: "A value is out of its range; param names the field.",
    429: "Too many requests are under way; Retry-After says when to come again.",
    431: "Path and headers are too large.",
    503: "The model is being loaded, or the engine cannot work; Retry-After says when to come again.",
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}


def description() -> Json:
    """The document."""
    models = list(dict.fromkeys(_BODIES.values()))
    _, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/components/schemas/{model}"
    )
    paths: Json = {path: {"get": _reading(path, *about)} for path, about in _READINGS.items()}
    paths |= {path: {"post": _posting(model)} for path, model in _BODIES.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "DeskInfer",
            "version": "1",
            "description": "The subset of OpenAI's API that is served here.",
        },
        "paths": paths,
        "components": {
            "schemas": {**definitions["$defs"], "Error": _ERROR},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _reading(path: str, summary: str, media_type: str) -> Json:
    operation: Json = {"summary": summary, "responses": _responses({media_type: {}}, (401, 403, 431))}
    if "{model}" in path:
        operation["parameters"] = [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}]
        operation["responses"] |= _responses({}, (404,))
    return operation


def _posting(model: type[BaseModel]) -> Json:
    media: Json = {"application/json": {}}
    if "stream" in model.model_fields:
        media["text/event-stream"] = {}
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {
        "summary": (model.__doc__ or "").strip(),
        "requestBody": {"required": bool(model.model_fields), "content": {"application/json": {"schema": schema}}},
        "responses": _responses(media, tuple(_ERRORS)),
    }


def _responses(media: Json, errors: tuple[int, ...]) -> Json:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: Json = {"200": {"description": "The answer.", "content": media}} if media else {}
    return found | {str(status): {"description": _ERRORS[status], "content": error} for status in errors}

"""An HTTP service made from an OpenAPI document: it reads each request by the document, with code
of its own, and answers with a value of the response's schema.
"""

from __future__ import annotations

import json
import re
from email.parser import BytesParser
from email.policy import HTTP
from random import Random
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.server.openapi.documents import sample

_METHODS = ("get", "put", "post", "delete", "patch")


class Service:
    """The service of a document, as an ASGI app.

    Attributes:
        seen: What the last request was: the operation, the parameters by place and name, the body.
        answered: The value that it was answered with.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.seen: dict[str, Any] = {}
        self.answered: Any = None
        self._random = Random(7)
        self._routes: list[tuple[str, re.Pattern[str], str]] = []
        for path in document["paths"]:
            pattern = "".join(
                f"(?P<{name}>[^/]+)" if place % 2 else re.escape(name)
                for place, name in enumerate(re.split(r"\{([^{}]+)\}", path))
            )
            self._routes.append((path, re.compile(pattern), pattern))
        self._routes.sort(key=lambda route: route[2].count("(?P<"))  # the plain ones first

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            raise RuntimeError("no lifespan")
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        try:
            status, answer = self._answer(scope, body)
        except Exception as bad:
            status = 400
            answer = {"message": f"{type(bad).__name__}: {bad}"}
        data = b"" if status == 204 else json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    def _answer(self, scope: Any, body: bytes) -> tuple[int, Any]:
        path = scope["raw_path"].decode()
        for template, pattern, _ in self._routes:
            found = pattern.fullmatch(path)
            item = self.document["paths"][template]
            operation = item.get(scope["method"].lower())
            if found is None or operation is None:
                continue
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.seen = {
                "operation": f"{scope['method']} {template}",
                "parameters": self._parameters(item, operation, found, scope, headers),
                "body": self._body(operation, headers.get("content-type", ""), body),
            }
            status = min(operation["responses"])
            content = operation["responses"][status].get("content")
            self.answered = None
            if content is not None:
                schema = content["application/json"]["schema"]
                self.answered = sample(self.document, schema, self._random)
            return int(status), self.answered
        raise ValueError(f"no operation {scope['method']} {path}")

    def resolve(self, node: Any) -> Any:
        """Follow a reference."""
        while isinstance(node, dict) and "$ref" in node:
            found: Any = self.document
            for piece in node["$ref"].removeprefix("#/").split("/"):
                found = found[piece]
            node = found
        return node

    # -- parameters --------------------------------------------------------------------------------

    def _parameters(
        self,
        item: Any,
        operation: Any,
        found: re.Match[str],
        scope: Any,
        headers: dict[str, str],
    ) -> dict[str, Any]:
        query = scope["query_string"].decode()
        values: dict[str, Any] = {}
        known = set()
        for given in [*item.get("parameters", ()), *operation.get("parameters", ())]:
            parameter = self.resolve(given)
            name = parameter["name"]
            place = parameter["in"]
            if place == "path":
                value = self._from_path(parameter, found[name])
            elif place == "query":
                value = self._from_query(parameter, query)
                known.add(name)
            elif place == "header":
                value = self._from_list(parameter, headers.get(name.lower()), ",", unescape=False)
            else:
                cookies = dict(part.split("=", 1) for part in headers["cookie"].split("; "))
                value = self._from_list(parameter, cookies.get(name), ",")
            if value is not None:
                values[f"{place} {name}"] = value
        return values

    def _from_path(self, parameter: Any, text: str) -> Any:
        style = parameter.get("style", "simple")
        explode = parameter.get("explode", False)
        kind = self.resolve(parameter["schema"])["type"]
        name = parameter["name"]
        if style == "simple":
            return self._from_list(parameter, text, ",")
        if style == "label":
            assert text.startswith(".")
            return self._from_list(parameter, text[1:], "." if explode else ",")
        assert text.startswith(";")
        if not explode or kind not in ("array", "object"):
            return self._from_list(parameter, text.removeprefix(f";{name}="), ",")
        pairs = [part.split("=", 1) for part in text[1:].split(";")]
        if kind == "array":
            assert {key for key, _ in pairs} == {name}
            return self._typed(parameter, [unquote(value) for _, value in pairs])
        return self._typed(parameter, {unquote(key): unquote(value) for key, value in pairs})

    def _from_query(self, parameter: Any, query: str) -> Any:
        style = parameter.get("style", "form")
        explode = parameter.get("explode", style in ("form", "deepObject"))
        kind = self.resolve(parameter["schema"])["type"]
        name = parameter["name"]
        pairs = parse_qsl(query, keep_blank_values=True)
        if style == "deepObject":
            inside = {
                key[len(name) + 1 : -1]: value
                for key, value in pairs
                if key.startswith(f"{name}[") and key.endswith("]")
            }
            return self._typed(parameter, inside) if inside else None
        if explode and kind == "object":
            return self._typed(parameter, dict(pairs)) if pairs else None
        if explode and kind == "array":
            values = [value for key, value in pairs if key == name]
            return self._typed(parameter, values) if values else None
        raw = [part.partition("=")[2] for part in query.split("&") if part.startswith(f"{name}=")]
        between = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}[style]
        return self._from_list(parameter, raw[0] if raw else None, between)

    def _from_list(
        self, parameter: Any, text: str | None, between: str, *, unescape: bool = True
    ) -> Any:
        """A value of the form `a,b`, `R,1,G,2` or `R=1,G=2`, or a plain one."""
        if text is None:
            return None
        read = unquote if unescape else str
        kind = self.resolve(parameter["schema"])["type"]
        if kind == "array":
            return self._typed(parameter, [read(part) for part in text.split(between)])
        if kind == "object":
            parts = text.split(between)
            if parameter.get("explode", False) and "=" in text:
                pairs = [tuple(part.split("=", 1)) for part in parts]
            else:
                pairs = list(zip(parts[::2], parts[1::2], strict=True))
            return self._typed(parameter, {read(key): read(value) for key, value in pairs})
        return self._typed(parameter, read(text))

    def _typed(self, parameter: Any, value: Any) -> Any:
        return self.typed(parameter["schema"], value)

    def typed(self, schema: Any, value: Any) -> Any:
        """The strings of a value as the types of its schema."""
        schema = self.resolve(schema)
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            return {
                key: self.typed(properties.get(key, {"type": "string"}), part)
                for key, part in value.items()
            }
        if isinstance(value, list):
            return [self.typed(schema["items"], part) for part in value]
        if schema.get("type") == "integer":
            return int(value)
        return value

    # -- bodies ------------------------------------------------------------------------------------

    def _body(self, operation: Any, kind: str, body: bytes) -> Any:
        if "requestBody" not in operation:
            assert not body
            return None
        ((expected, media),) = operation["requestBody"]["content"].items()
        assert kind.startswith(expected), kind
        if expected == "application/json":
            return json.loads(body)
        if expected == "text/plain":
            return body.decode()
        if expected == "application/octet-stream":
            return body
        if expected == "multipart/form-data":
            return self._multipart(media["schema"], kind, body)
        return self._form(media["schema"], body.decode())

    def _multipart(self, schema: Any, kind: str, body: bytes) -> Any:
        head = f"Content-Type: {kind}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP).parsebytes(head + body)
        found: dict[str, Any] = {}
        for part in message.iter_parts():  # type: ignore[attr-defined] # of EmailMessage
            name = part.get_param("name", header="content-disposition")
            data = part.get_payload(decode=True)
            property_ = schema["properties"][name]
            if property_.get("format") == "binary":
                assert part.get_filename()
                found[name] = data
            elif part.get_content_type() == "application/json":
                found[name] = json.loads(data)
            elif property_["type"] == "array":
                found.setdefault(name, []).append(data.decode())
            else:
                found[name] = self.typed(property_, data.decode())
        return found

    def _form(self, schema: Any, text: str) -> Any:
        """A URL-encoded form with `deepObject`, as payment services read it."""
        found: dict[str, Any] = {}
        for key, value in parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)):
            name, bracket, inner = key.partition("[")
            property_ = schema["properties"][name]
            if not bracket:
                found[name] = self.typed(property_, value)
            elif property_["type"] == "array":
                found.setdefault(name, []).append(value)
            else:
                found.setdefault(name, {})[inner[:-1]] = value
        return found

"""Images, audio and files as content blocks, and the detection of MIME types."""

from __future__ import annotations

import os
from base64 import b64encode, urlsafe_b64encode
from typing import Any, ClassVar

from msgspec import Struct

from ..types import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    ImageContent,
    JSONObject,
    ResourceContents,
)

Source = bytes | bytearray | memoryview

# Types that models often handle, identical on every machine. The standard library's table is the
# fallback.
_BY_SUFFIX = {
    **dict.fromkeys(
        ("txt", "log", "text", "ini", "cfg", "conf", "env", "lock", "rst", "adoc", "diff", "patch"),
        "text/plain",
    ),
    **dict.fromkeys(("md", "markdown", "mdx"), "text/markdown"),
    **dict.fromkeys(("htm", "html"), "text/html"),
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
    **dict.fromkeys(("jpg", "jpeg"), "image/jpeg"),
    **dict.fromkeys(("js", "mjs", "cjs"), "text/javascript"),
    **dict.fromkeys(("sh", "bash", "zsh"), "text/x-sh"),
    **dict.fromkeys(("c", "h"), "text/x-c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hpp", "hh"), "text/x-c++"),
    **dict.fromkeys(("py", "pyi"), "text/x-python"),
    **dict.fromkeys(("ts", "tsx", "mts", "cts"), "text/x-typescript"),
    **dict.fromkeys(("ogg", "oga", "opus"), "audio/ogg"),
    "css": "text/css",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "tex": "text/x-tex",
    "jsx": "text/jsx",
    "go": "text/x-go",
    "rs": "text/x-rust",
    "java": "text/x-java",
    "kt": "text/x-kotlin",
    "rb": "text/x-ruby",
    "php": "text/x-php",
    "lua": "text/x-lua",
    "swift": "text/x-swift",
    "r": "text/x-r",
    "vue": "text/x-vue",
    "svelte": "text/x-svelte",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "ndjson": "application/x-ndjson",
    "toml": "application/toml",
    "xml": "application/xml",
    "sql": "application/sql",
    "ipynb": "application/x-ipynb+json",
    "graphql": "application/graphql",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "tar": "application/x-tar",
    "wasm": "application/wasm",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "avif": "image/avif",
    "ico": "image/x-icon",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "mp4": "video/mp4",
    "webm": "video/webm",
}
_BY_NAME = dict.fromkeys(
    ("readme", "license", "licence", "notice", "changelog", "makefile", "dockerfile", ".gitignore"),
    "text/plain",
)

_TEXT_BESIDE_TEXT = frozenset(
    {
        "application/json",
        "application/yaml",
        "application/toml",
        "application/xml",
        "application/sql",
        "application/jsonl",
        "application/x-ndjson",
        "application/graphql",
        "application/javascript",
        "image/svg+xml",
    },
)

# Offset, bytes, MIME type.
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypM4A ", "audio/mp4"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"%PDF-", "application/pdf"),
)


def guess_mime(name_or_uri: str) -> str | None:
    """The MIME type by the suffix of a file name or URI; None if it is unknown.

    The query and the fragment are ignored.
    """
    if name_or_uri.startswith("data:"):
        return name_or_uri[5:].partition(",")[0].partition(";")[0] or "text/plain"
    path = name_or_uri
    if "://" in path:
        from urllib.parse import (
            unquote,
            urlsplit,
        )  # imported late: a server without resources starts the quicker

        try:
            parts = urlsplit(path)
            # In docs://readme.md the name is in the place of the host. In http and https URIs that
            # place always holds a host.
            path = unquote(
                parts.path or ("" if parts.scheme in ("http", "https") else parts.netloc)
            )
        except ValueError:  # an invalid host, as in "x://[": only the name matters here
            path = path.partition("?")[0].partition("#")[0]
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    stem, dot, suffix = name.rpartition(".")
    if name in _BY_NAME:
        return _BY_NAME[name]
    if not dot or not stem:
        return None
    return _BY_SUFFIX.get(suffix) or _standard(suffix)


def _standard(suffix: str) -> str | None:
    import mimetypes  # seldom needed, and reads files of the system when it is

    return mimetypes.MimeTypes().types_map[True].get("." + suffix)


def sniff(data: bytes) -> str | None:
    """The MIME type by the first bytes of an image, audio or PDF file; None if it is unknown."""
    for offset, magic, mime in _MAGIC:
        if data.startswith(magic, offset) and (offset != 8 or data.startswith(b"RIFF")):
            return mime
    return None


def is_text(mime_type: str) -> bool:
    """Whether content of this type is sent as text."""
    kind = mime_type.partition(";")[0].strip().lower()
    return (
        kind.startswith("text/")
        or kind in _TEXT_BESIDE_TEXT
        or kind.endswith(("+json", "+xml", "+yaml"))
    )


class _Medium(Struct, frozen=True):
    """Bytes or a file, and their type."""

    data: Source | None = None
    path: str | os.PathLike[str] | None = None
    format: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    meta: JSONObject | None = None

    family: ClassVar[str] = ""

    def __post_init__(self) -> None:
        _one_source(self, Source)
        if self.format is not None and self.mime_type is not None:
            raise ValueError(f"{_called(self)} takes format= or mime_type=, not both")
        if self.mime_type is not None:
            self._fitting(self.mime_type)

    def _fitting(self, mime_type: str) -> str:
        if not mime_type.startswith(f"{self.family}/"):
            raise ValueError(
                f"{_called(self)} cannot be {mime_type}: its MIME type starts with {self.family}/"
            )
        return mime_type

    def _read(self) -> tuple[str, str]:
        """The base64 of the bytes, and their MIME type."""
        data = _bytes(self)
        mime_type = (
            self.mime_type or (self.format and self._of_format(self.format)) or self._guessed(data)
        )
        return b64encode(data).decode("ascii"), mime_type

    def _of_format(self, format: str) -> str:
        name = format.lower().lstrip(".")
        known = _BY_SUFFIX.get(name, "")
        return known if known.startswith(f"{self.family}/") else f"{self.family}/{name}"

    def _guessed(self, data: bytes) -> str:
        mime_type = (guess_mime(str(self.path)) if self.path is not None else None) or sniff(data)
        if mime_type is None:
            raise ValueError(
                f"{_called(self)}: neither the name nor the first bytes tell the type; say"
                " mime_type="
            )
        return self._fitting(mime_type)


class Image(_Medium, frozen=True):
    """An image for a result or a prompt: `Image(path="chart.png")`, `Image(data=png)`.

    Args:
        data: The bytes. Give either `data` or `path`.
        path: A file, read when the content block is made.
        format: The type of image, such as "png", if neither name nor content reveal it.
        mime_type: The MIME type, in place of `format`.
        annotations: Annotations of the content block.
        meta: Its `_meta`.

    Raises:
        ValueError, TypeError: The arguments contradict each other.
    """

    family: ClassVar[str] = "image"

    def content(self) -> ImageContent:
        """The content block.

        Raises FileNotFoundError; and ValueError if the type is unknown or not an image.
        """
        data, mime_type = self._read()
        return ImageContent(
            data=data, mime_type=mime_type, annotations=self.annotations, meta=self.meta
        )


class Audio(_Medium, frozen=True):
    """Audio for a result or a prompt: `Audio(path="bell.wav")`, `Audio(data=wav)`.

    Args:
        data: The bytes. Give either `data` or `path`.
        path: A file, read when the content block is made.
        format: The type of audio, such as "wav", if neither name nor content reveal it.
        mime_type: The MIME type, in place of `format`.
        annotations: Annotations of the content block.
        meta: Its `_meta`.

    Raises:
        ValueError, TypeError: The arguments contradict each other.
    """

    family: ClassVar[str] = "audio"

    def content(self) -> AudioContent:
        """The content block.

        Raises FileNotFoundError; and ValueError if the type is unknown or not audio.
        """
        data, mime_type = self._read()
        return AudioContent(
            data=data, mime_type=mime_type, annotations=self.annotations, meta=self.meta
        )


class File(Struct, frozen=True):
    """A file embedded in a result or a prompt: text as text, anything else as a base64 blob.

    Args:
        data: The content. Give either `data` or `path`.
        path: A file, read when the content block is made.
        uri: The URI of the content. By default `file:///` and the name of the file, never its
            folder; for bytes without a name, a URI made from their SHA-256 (RFC 6920).
        name: The name of the file.
        mime_type: The MIME type; guessed from the name and the first bytes by default.
        annotations: Annotations of the content block.
        meta: Its `_meta`.

    Raises:
        ValueError, TypeError: The arguments contradict each other.
    """

    data: Source | str | None = None
    path: str | os.PathLike[str] | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    meta: JSONObject | None = None

    def __post_init__(self) -> None:
        _one_source(self, Source | str)

    def content(self) -> EmbeddedResource:
        """The content block. Raises FileNotFoundError if the file does not exist."""
        data = _bytes(self)
        name = self.name or (
            os.path.basename(os.fspath(self.path)) if self.path is not None else None
        )
        mime_type = self.mime_type or guess_mime(name or self.uri or "") or sniff(data)
        text = _text(data) if mime_type is None or is_text(mime_type) else None
        resource = ResourceContents(
            uri=self.uri or (_file_uri(name) if name else _named_by_hash(data)),
            mime_type=mime_type or ("application/octet-stream" if text is None else "text/plain"),
            text=text,
            blob=b64encode(data).decode("ascii") if text is None else None,
        )
        return EmbeddedResource(resource=resource, annotations=self.annotations, meta=self.meta)


def _one_source(medium: _Medium | File, kinds: Any) -> None:
    if (medium.data is None) == (medium.path is None):
        raise ValueError(
            f"{_called(medium)} takes data= or path=,"
            f" {'one of them' if medium.data is None else 'not both'}"
        )
    if medium.data is not None and not isinstance(medium.data, kinds):
        raise TypeError(
            f"{_called(medium)} takes its data as bytes, not {type(medium.data).__name__}; a file"
            " is named with path="
        )
    if medium.path is not None and not isinstance(medium.path, str | os.PathLike):
        raise TypeError(
            f"{_called(medium)} takes its path as str or Path, not {type(medium.path).__name__}"
        )


def _called(medium: _Medium | File) -> str:
    return (
        type(medium).__name__
        if medium.path is None
        else f"{type(medium).__name__} of {medium.path}"
    )


def _bytes(medium: _Medium | File) -> bytes:
    if isinstance(medium.data, str):
        return medium.data.encode()
    if medium.data is not None:
        return bytes(medium.data)
    try:
        with open(os.fspath(medium.path or ""), "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"{_called(medium)}: there is no such file") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{_called(medium)}: this is a folder") from None


def _text(data: bytes) -> str | None:
    """The bytes as text, if they are UTF-8 without null bytes."""
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _file_uri(name: str) -> str:
    from urllib.parse import quote  # late, as above

    return f"file:///{quote(name)}"


def _named_by_hash(data: bytes) -> str:
    import hashlib  # late, as above

    return "ni:///sha-256;" + urlsafe_b64encode(hashlib.sha256(data).digest()).decode(
        "ascii"
    ).rstrip("=")

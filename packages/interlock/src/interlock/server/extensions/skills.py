"""The server side of the skills extension (SEP-2640): entries, directories, and files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from ... import types as t
from ...cursors import encode_cursor
from ...exchange import AnyResult, Caller, Exchange, RawResult
from ...extension import Extension
from ...logs import limited
from ...skills.entries import (
    DYNAMIC,
    SkillEntry,
    SkillResource,
    check_frontmatter,
    check_size,
    digest_of,
    verify_frontmatter,
)
from ...skills.frontmatter import read_frontmatter
from ...skills.messages import SKILLS, DirectoryResult, GetSkillResult, ListSkillsResult
from ...skills.names import SKILL_MD, check_segment, uri_at, uri_of
from ...typed.content import contents
from ...typed.docstrings import parse
from ...typed.media import guess_mime
from ...typed.string_arguments import Strings
from ...typed.type_hints import doc_of
from ...typed.uri_templates import Template
from ...types.errors import SkillError
from ..calls.dependencies import dependencies_of
from ..catalogue.catalogue import Catalogue
from ..catalogue.features import Call, FeatureList, ResourceFeature, TemplateFeature, call_of
from ..catalogue.listing import read_cursor
from ..catalogue.scopes import NONE, check, held, scopes_of
from ..handlers import Handlers
from .skill_files import SkillFiles, read_folder

log = limited("interlock.server")
DIRECTORY = "inode/directory"
MARKDOWN = "text/markdown"
MOST_SKILLS_A_PAGE = 100
"""The maximum number of entries on a page of skills/list. With 512 files each, a page stays within
about 10 MB.
"""

MOST_DESCRIPTION = 1024
"""The maximum length of a description in Agent Skills, in characters."""

_LIST = "skills"
_DIRECTORY = "resources/directory"
_Place = Annotated[int, msgspec.Meta(ge=1)]
FileContent = str | bytes | os.PathLike[str]


class SkillFeature(Struct, frozen=True):
    """A skill: its entry and, for a generated skill, the function that makes its files."""

    listing: SkillEntry
    scopes: frozenset[str] = NONE
    call: Call | None = None

    @property
    def key(self) -> str:
        """The URI of the skill."""
        return self.listing.uri


class _Publication(Struct):
    """Skills that were added together, with their resources by URI and their folders."""

    skills: list[SkillFeature]
    resources: list[ResourceFeature]
    templates: list[TemplateFeature]
    folders: dict[str, frozenset[str]]  # URI -> the scopes of the folder's content


class Skills:
    """The skills of one server.

    Files are read when a skill is added, so that an entry and its files always agree.
    """

    def __init__(self, catalogue: Catalogue, handlers: Handlers, list_ttl_ms: int) -> None:
        self._catalogue = catalogue
        self._handlers = handlers
        self._list_ttl_ms = list_ttl_ms
        self._publications: dict[str, _Publication] = {}
        self.features: FeatureList[SkillFeature] = FeatureList(
            "skill", lambda name: catalogue.forget()
        )
        self._tree: dict[str, dict[str, _Child]] | None = None
        most = min(catalogue.pages.page_size, MOST_SKILLS_A_PAGE)
        catalogue.offer_list(_LIST, self.features, ListSkillsResult, most)

    def extension(self) -> Extension:
        """The extension that serves the skills."""
        return SKILLS.with_handlers(
            {
                "skills/list": self.list,
                "skills/get": self.get,
                "resources/directory/read": self.read_directory,
            },
            settings={"directoryRead": True},
            requires="resources",
        )

    # -- adding and removing -----------------------------------------------------------------------

    def add_folder(self, folder: str | os.PathLike[str], *, prefix: str, scopes: Any) -> None:
        """Add all skills in a folder and its subfolders."""
        asked = scopes_of(scopes, f"the skills in {os.fspath(folder)}")
        found = read_folder(folder)
        start = f"{_checked_path(prefix)}/" if prefix else ""
        moved = SkillFiles(
            {f"{start}{path}": data for path, data in found.files.items()},
            frozenset(f"{start}{path}" for path in found.folders),
        )
        self._publish(
            f"folder {Path(folder).absolute()} {prefix}", _published(moved, asked, self._ttl)
        )

    def add_files(
        self, path: str, files: Mapping[str, FileContent], *, scopes: Any, replace: bool
    ) -> None:
        """Add one skill, and the skills nested in it, from its files."""
        path = _checked_path(path)
        asked = scopes_of(scopes, f"the skill {path}")
        read = {f"{path}/{_checked_path(name)}": _bytes(data) for name, data in files.items()}
        if f"{path}/{SKILL_MD}" not in read:
            raise SkillError(f"The skill {path} has no {SKILL_MD}.")
        folders = frozenset(
            "/".join(file.split("/")[:end])
            for file in read
            for end in range(len(path.split("/")), len(file.split("/")))
        )
        found = _published(SkillFiles(read, folders), asked, self._ttl)
        self._publish(f"skill {path}", found, replace=replace)

    def add_generated(
        self,
        path: str,
        function: Callable[..., Any],
        context_type: type[Any],
        *,
        description: str | None,
        frontmatter: Mapping[str, Any] | None,
        scopes: Any,
        timeout: float | None,
        replace: bool,
    ) -> None:
        """Add a skill whose files come from a function, which runs each time a file is read."""
        path = _checked_path(path)
        name = path.rpartition("/")[2]
        words = description or parse(doc_of(function)).summary_and_text or ""
        fields = {"name": name, "description": words, **(frontmatter or {})}
        _check_author(path, fields)
        strings = Strings(function, context_type)
        if strings.names:
            raise TypeError(
                f"the function of the skill {path} wants {', '.join(sorted(strings.names))}; "
                "it can take a Context and dependencies, and nothing else"
            )
        asked = scopes_of(scopes, f"the skill {path}")
        needs = dependencies_of(strings.injected, context_type)
        root = uri_at(path)
        entry = SkillEntry(uri=f"{root}/{SKILL_MD}", frontmatter=fields, resources=DYNAMIC)

        def called(finish: Callable[..., Any]) -> Call:
            return call_of(
                _then(function, finish),
                strings.context,
                timeout=timeout,
                concurrency=None,
                queue=0,
                name=f"The skill {path}",
                needs=needs,
            )

        def file_of(files: Any, file: str) -> t.ResourceContents | None:
            return _generated(entry, root, files, file)

        def skill_md_of(files: Any) -> t.ResourceContents | None:
            return _generated(entry, root, files, SKILL_MD)

        skill_md = ResourceFeature(
            t.Resource(uri=entry.uri, name=name, description=words, mime_type=MARKDOWN),
            called(skill_md_of),
            scopes=asked,
        )
        template = Template(f"{root}/{{+file}}")
        others = TemplateFeature(
            t.ResourceTemplate(
                uri_template=template.text,
                name=name,
                description=f"The files of the skill {name}.",
            ),
            template,
            called(file_of),
            Strings(_file, context_type),
            scopes=asked,
        )
        skill = SkillFeature(entry, asked, called(lambda files: files))
        found = _Publication([skill], [skill_md], [others], {root: asked})
        self._publish(f"skill {path}", found, replace=replace)

    def remove(self, path: str) -> None:
        """Remove a skill that was added by its path, with its files. Raises KeyError."""
        key = f"skill {path}"
        if key not in self._publications:
            raise KeyError(f"there is no skill {path!r} that was added by its path")
        self._withdraw(key)

    def _publish(self, key: str, found: _Publication, *, replace: bool = False) -> None:
        old = self._publications.get(key) if replace else None
        self._check_free(found, old)
        before = {feature.key: feature for feature in old.resources} if old is not None else {}
        if old is not None:
            self._withdraw(key)
        server = self._catalogue
        for resource in found.resources:
            server.resources.add(resource)
        for template in found.templates:
            server.templates.add(template)
        self._warn_of_equal_names(found.skills)
        for skill in found.skills:
            self.features.add(skill)
        self._publications[key] = found
        self._tree = None
        for resource in found.resources:
            known = before.get(resource.key)
            if known is not None and known.content != resource.content:
                server.updated(resource.key)

    def _warn_of_equal_names(self, added: Iterable[SkillFeature]) -> None:
        """Warn if two skills have one name. That is legal, but users cannot tell them apart."""
        by_name = {skill.listing.name: skill.key for skill in self.features.all()}
        for skill in added:
            other = by_name.setdefault(skill.listing.name, skill.key)
            if other != skill.key:
                log.warning(
                    "the skills %s and %s have the same name; give one of them another name, so "
                    "that users can tell them apart",
                    other,
                    skill.key,
                )

    def _check_free(self, found: _Publication, old: _Publication | None) -> None:
        """Raise ValueError if a URI is taken, before anything is added."""
        own = set() if old is None else {feature.key for feature in old.resources}
        for resource in found.resources:
            if resource.key not in own and self._catalogue.resources.get(resource.key) is not None:
                raise ValueError(f"there is a resource {resource.key!r} already")
        for publication in self._publications.values():
            if publication is old:
                continue
            for skill in found.skills:
                for other in publication.skills:
                    one = f"{skill.listing.root}/"
                    two = f"{other.listing.root}/"
                    if one.startswith(two) or two.startswith(one):
                        raise ValueError(
                            f"the skills {one[:-1]} and {two[:-1]} lie within each other; a nested "
                            "skill must be added together with the one around it"
                        )

    def _withdraw(self, key: str) -> None:
        gone = self._publications.pop(key)
        for skill in gone.skills:
            self.features.remove(skill.key)
        for resource in gone.resources:
            self._catalogue.resources.remove(resource.key)
        for template in gone.templates:
            self._catalogue.templates.remove(template.key)
        self._tree = None

    @property
    def _ttl(self) -> int:
        return self._list_ttl_ms

    # -- methods -----------------------------------------------------------------------------------

    async def list(self, x: Exchange) -> AnyResult:
        """`skills/list`: one page of entries, cached until a skill is added or removed."""
        return RawResult(self._catalogue.page(_LIST, x.params.cursor, x.caller))

    async def get(self, x: Exchange) -> AnyResult:
        """`skills/get`: the entry of one skill."""
        skill = self.features.get(x.params.uri)
        if skill is None or not self._catalogue.visibility.shows(self.features, skill, x.caller):
            raise t.McpError(t.INVALID_PARAMS, f"No skill is served at {x.params.uri}")
        check(x.caller, skill.scopes)
        return GetSkillResult(
            skill=skill.listing,
            ttl_ms=self._ttl,
            cache_scope="private"
            if skill.scopes or self._catalogue.visibility.has_hook
            else "public",
        )

    async def read_directory(self, x: Exchange) -> AnyResult:
        """`resources/directory/read`: the direct children of a directory."""
        uri: str = x.params.uri
        generated = self._generated_around(uri, x.caller)
        if generated is not None:
            check(x.caller, generated.scopes)
            children = await self._generated_children(generated, uri, x)
        else:
            children = self._children(uri, x.caller)
        if children is None:
            resources = self._catalogue.resources
            file = resources.get(uri)
            is_file = file is not None and self._catalogue.visibility.shows(
                resources, file, x.caller
            )
            what = "is not a directory resource" if is_file else "does not exist"
            raise t.McpError(t.INVALID_PARAMS, f"{uri} {what}")
        cursor = x.params.cursor
        start = 0 if cursor is None else read_cursor(cursor, _Place, _DIRECTORY)
        page = children[start : start + self._catalogue.pages.page_size]
        end = start + len(page)
        return DirectoryResult(
            resources=page,
            next_cursor=encode_cursor(end, _DIRECTORY) if end < len(children) else None,
            ttl_ms=0 if generated is not None else self._ttl,
            cache_scope="private",  # the content of a directory depends on the caller
        )

    def _children(self, uri: str, caller: Caller) -> Any:
        """Return the visible children, ordered by URI; None if there is no such directory."""
        have = held(caller)
        if self._catalogue.visibility.has_hook:
            found = self._shown_tree(caller).get(uri)
        else:
            if self._tree is None:
                self._tree = _tree_of(self._publications.values())
            found = self._tree.get(uri)
        if found is None:
            return None
        seen = [
            child.listing
            for _, child in sorted(found.items())
            if have is None or any(scopes <= have for scopes in child.scopes)
        ]
        return None if found and not seen else seen

    def _shown_tree(self, caller: Caller) -> dict[str, dict[str, _Child]]:
        """Return the directories that contain a file which the visibility hook shows to a
        caller.
        """
        server = self._catalogue
        return _tree_of(
            _Publication(
                [],
                [
                    resource
                    for resource in publication.resources
                    if server.visibility.shows(server.resources, resource, caller)
                ],
                [],
                {},
            )
            for publication in self._publications.values()
        )

    def _generated_around(self, uri: str, caller: Caller) -> SkillFeature | None:
        for skill in self.features.all():
            if skill.call is not None and f"{uri}/".startswith(f"{skill.listing.root}/"):
                return (
                    skill
                    if self._catalogue.visibility.shows(self.features, skill, caller)
                    else None
                )
        return None

    async def _generated_children(self, skill: SkillFeature, uri: str, x: Exchange) -> Any:
        assert skill.call is not None
        files = await self._handlers.run_for(f"the skill {skill.key}", skill.call, x)
        root = skill.listing.root
        resources = [
            _resource(uri_of(root, _checked_path(path)), path, None, None) for path in files
        ]
        made = _Publication([], [ResourceFeature(one) for one in resources], [], {root: NONE})
        found = _tree_of([made]).get(uri)
        if found is None:
            return None
        return [child.listing for _, child in sorted(found.items())]


class _Child(Struct):
    """A child of a directory, and the scopes of each file in it. A caller sees it if it may read
    one of them.
    """

    listing: t.Resource
    scopes: set[frozenset[str]]


def _tree_of(publications: Iterable[_Publication]) -> dict[str, dict[str, _Child]]:
    """Return the children of every directory, by URI."""
    tree: dict[str, dict[str, _Child]] = {}

    def enter(listing: t.Resource, scopes: frozenset[str]) -> None:
        parent = listing.uri.rpartition("/")[0]
        if parent.endswith("/"):
            return  # the skill:// before the first segment is not a directory
        child = tree.setdefault(parent, {}).setdefault(listing.uri, _Child(listing, set()))
        child.scopes.add(scopes)
        name = t.Resource(uri=parent, name=_last(parent), mime_type=DIRECTORY)
        enter(name, scopes)

    for publication in publications:
        for uri, scopes in publication.folders.items():
            tree.setdefault(uri, {})
            enter(t.Resource(uri=uri, name=_last(uri), mime_type=DIRECTORY), scopes)
        for resource in publication.resources:
            enter(resource.listing, resource.scopes)
    return tree


def _last(uri: str) -> str:
    from urllib.parse import unquote  # late: only for directories, which are seldom read

    return unquote(uri.rpartition("/")[2])


def _published(found: SkillFiles, scopes: frozenset[str], ttl_ms: int) -> _Publication:
    """Return the entries and resources of skills, from their files. Raises SkillError."""
    bases = [
        path.rpartition("/")[0]
        for path in sorted(found.files)
        if path.rpartition("/")[2] == SKILL_MD
    ]
    texts: dict[str, Mapping[str, Any]] = {}
    for base in bases:
        try:
            texts[base] = _frontmatter(base, found.files[f"{base}/{SKILL_MD}"])
        except SkillError as bad:
            raise SkillError(f"The skill {base} cannot be served: {bad}") from None
    for path in (*found.files, *found.folders):
        _checked_path(path)
    manifest = {
        path: SkillResource(uri=uri_at(path), digest=digest_of(data), size=len(data))
        for path, data in found.files.items()
    }
    skills: list[SkillFeature] = []
    for base, fields in texts.items():
        files = [one for path, one in sorted(manifest.items()) if path.startswith(f"{base}/")]
        entry = SkillEntry(
            uri=uri_at(f"{base}/{SKILL_MD}"), frontmatter=dict(fields), resources=files
        )
        try:
            check_size(len(files), entry.size)
        except SkillError as bad:
            raise SkillError(f"The skill {base} cannot be served: {bad}") from None
        skills.append(SkillFeature(entry, scopes))
    resources = []
    for path, data in sorted(found.files.items()):
        base = path.rpartition("/")[0]
        fields = texts.get(base, {}) if path.endswith(f"/{SKILL_MD}") else {}
        listing = _resource(uri_at(path), path, data, fields)
        content = contents(_text_or_bytes(data), listing.uri, listing.mime_type)
        resources.append(
            ResourceFeature(
                listing, None, content, ttl_ms, "private" if scopes else "public", scopes
            )
        )
    folders = {uri_at(folder): scopes for folder in found.folders}
    return _Publication(skills, resources, [], folders)


def _resource(
    uri: str, path: str, data: bytes | None, fields: Mapping[str, Any] | None
) -> t.Resource:
    name = path.rpartition("/")[2]
    mime = MARKDOWN if name == SKILL_MD else guess_mime(name)
    if mime is None and data is not None:
        is_text = isinstance(_text_or_bytes(data), str)
        mime = "text/plain" if is_text else "application/octet-stream"
    return t.Resource(
        uri=uri,
        name=fields["name"] if fields else name,
        description=fields["description"] if fields else None,
        mime_type=mime,
        size=None if data is None else len(data),
    )


def _frontmatter(base: str, data: bytes) -> Mapping[str, Any]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise SkillError(f"its {SKILL_MD} is not UTF-8.") from None
    fields = read_frontmatter(text)
    _check_author(base, fields)
    return fields


def _check_author(path: str, fields: Mapping[str, Any]) -> None:
    """Check the frontmatter by the rules of Agent Skills, which are stricter than the checks of
    clients.
    """
    check_frontmatter(fields)
    last = path.rpartition("/")[2]
    if fields["name"] != last:
        raise SkillError(
            f"its name is {fields['name']!r} and its folder {last!r}; both must be the same."
        )
    if len(fields["description"]) > MOST_DESCRIPTION:
        raise SkillError(f"its description has more than {MOST_DESCRIPTION} characters.")


def _checked_path(path: str) -> str:
    """Return a relative path after checking each segment. Raises SkillError."""
    for segment in path.split("/"):
        check_segment(segment, path)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise SkillError(f"the name {path!r} is not UTF-8.") from None
    return path


def _bytes(data: FileContent) -> bytes:
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, os.PathLike):
        return Path(data).read_bytes()
    return bytes(data)


def _text_or_bytes(data: bytes) -> str | bytes:
    """Return text if the bytes are UTF-8, which preserves them; otherwise the bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _generated(entry: SkillEntry, root: str, files: Any, path: str) -> t.ResourceContents | None:
    """Return one file from the result of a skill's function; None if it has no such file."""
    if not isinstance(files, Mapping):
        raise TypeError(
            f"the function of the skill {entry.uri} gave {type(files).__name__}; it must give a "
            'dict of its files, such as {"SKILL.md": "..."}'
        )
    if path not in files:
        return None
    content = _text_or_bytes(_bytes(files[path]))
    if path == SKILL_MD and isinstance(content, str):
        if not content.startswith("---"):
            content = _with_frontmatter(entry.frontmatter, content)
        verify_frontmatter(entry, content)
    uri = uri_of(root, path)
    return contents(content, uri, _resource(uri, path, _bytes(files[path]), None).mime_type)


def _with_frontmatter(fields: Mapping[str, Any], body: str) -> str:
    """Return a text with frontmatter before it. Each value is JSON, which is valid YAML too."""
    lines = [f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in fields.items()]
    return f"---\n{''.join(lines)}---\n\n{body}"


def _then(function: Callable[..., Any], finish: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one and passes its result and `file` to `finish`."""
    inner: Any = function
    if not inspect.isroutine(inner):
        inner = getattr(inner, "__call__", inner)  # noqa: B004 - an object that can be called

    if inspect.iscoroutinefunction(inner):

        async def awaiting(*args: Any, **values: Any) -> Any:
            file = {"file": values.pop("file")} if "file" in values else {}
            return finish(await function(*args, **values), **file)

        return awaiting

    def calling(*args: Any, **values: Any) -> Any:
        file = {"file": values.pop("file")} if "file" in values else {}
        return finish(function(*args, **values), **file)

    return calling


def _file(file: str) -> None:
    """Declares the variable `file` of the template of a generated skill."""

"""Which file is which: known ones are found again under other names, cut short or copied, and new ones are told from them.

A file is the one that was read before if its first bytes, and those before the place up to which it was read, are the same. The
file system's number of it says where to look first; by itself it proves nothing, because numbers are used again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import closing, suppress

from headrace.files.chunks import LOOK, told
from headrace.files.contents import PACKED, Content, Plain, opened
from headrace.files.ledger import Followed
from headrace.files.listing import Found, found, found_in


def former_names(path: str) -> list[str]:
    """The names that a file may have had before rotation gave it, or a copy of it, this one; its own is the first.

    >>> former_names("log.csv.1.gz"), former_names("log-2026.csv")
    (['log.csv.1.gz', 'log.csv.1', 'log.csv', 'log', 'log.1'], ['log-2026.csv', 'log-2026', 'log', 'log.csv'])
    """
    folder, name = os.path.split(path)
    for ending in PACKED:
        name = name.removesuffix(ending)
    dot, ending = name.rpartition(".")[1:]
    found = [os.path.basename(path), name]
    for i in reversed([i for i, letter in enumerate(name) if letter in ".-_" and i]):
        found += [name[:i], *([name[:i] + dot + ending] if dot else [])]
    return [os.path.join(folder, n) for n in dict.fromkeys(found)]


def is_same(file: Followed, content: Content) -> bool:
    """Whether a content begins with what has been read of a file."""
    if not file.offset:
        return True
    near = min(LOOK, file.offset)
    try:
        return told(content.read(near, 0)) == file.head and told(content.read(near, file.offset - near)) == file.tail
    except EOFError:
        return False


def is_copy_so_far(new: Content, size: int, of: Content) -> bool:
    near = min(LOOK, size)
    return new.read(near, 0) == of.read(near, 0) and new.read(near, size - near) == of.read(near, size - near)


class Register:
    """All files that are known, by where they are."""

    def __init__(self, known: Iterable[Followed], tell: Callable[[str], None]) -> None:
        """Those that earlier runs have read are lost until they are found."""
        self.live: dict[tuple[int, int], Followed] = {}
        self.adrift: dict[int, Followed] = {}  # deleted, or moved away, but open: they can be read to their end
        self.lost: dict[int, Followed] = {f.seen: f for f in known}
        self._outside: set[int] = set()  # live, but not where files are looked for
        self.moved = False  # whether some known file has got another name since somebody noted this
        self._by_name: dict[str, list[Followed]] | None = None
        self._tell = tell

    def look(self, seen: list[Found], begin: Callable[[str, os.stat_result], Followed]) -> list[Followed]:
        """Take in what files there are now; gives those with something to read. `begin` makes a new one."""
        changed, fresh, here = [], [], set[tuple[int, int]]()
        lost = {f.identity: f for f in self.lost.values()}
        for path, status in [*seen, *self._found_outside()]:
            identity = (status.st_dev, status.st_ino)
            if identity in here:
                continue  # the same file by two names
            here.add(identity)
            file = self.live.get(identity)
            if file is not None and file.path == path and (status.st_size, status.st_mtime_ns) == (file.size, file.changed):
                continue
            file = file or lost.get(identity)
            if file is None:
                fresh.append((path, status))
            elif self._holds(path, status, file):
                changed.append(self._place(file, path, status))
            else:
                self._lose(file, unsure=True)
                fresh.append((path, status))
        changed += self._missing(here)
        self._by_name = None
        for path, status in sorted(fresh, key=lambda f: (f[1].st_mtime_ns, f[0])):
            file = self._decide(path, status, begin) if status.st_size else None
            if file is not None:
                changed.append(file)
        self._say_what_is_gone()
        return changed

    def finished(self, file: Followed) -> None:
        """A file that was adrift has been read to its end."""
        file.close()
        file.size = file.offset
        self.adrift.pop(file.seen, None)
        self.lost[file.seen] = file

    # Files that are known

    def _place(self, file: Followed, path: str, status: os.stat_result) -> Followed:
        """A known file is here now."""
        identity, before = (status.st_dev, status.st_ino), (file.path, *file.identity)
        if identity != file.identity or file.path.endswith(PACKED) != path.endswith(PACKED):
            self._leave(file)
            file.close()
            file.device, file.inode = identity
        self.moved = self.moved or (path, *identity) != before
        self.lost.pop(file.seen, None)
        self.adrift.pop(file.seen, None)
        self._outside.discard(file.seen)
        self.live[identity] = file
        file.path, file.size, file.changed, file.gone = path, status.st_size, status.st_mtime_ns, False
        return file

    def _leave(self, file: Followed) -> None:
        """It is not where it was; another file may have its number by now."""
        if self.live.get(file.identity) is file:
            del self.live[file.identity]

    def _holds(self, path: str, status: os.stat_result, file: Followed) -> bool:
        """Whether what has been read of a file is what the file at this path begins with."""
        if not path.endswith(PACKED) and status.st_size < file.offset:
            return False
        if file.content is not None and file.identity == (status.st_dev, status.st_ino):
            return is_same(file, file.content)
        try:
            content = opened(path)
        except OSError:
            return False
        with closing(content):
            return is_same(file, content)

    def _found_outside(self) -> list[Found]:
        out = (there for file in self.live.values() if file.seen in self._outside for there in found(file.path))
        return [(path, status) for path, status in out if (status.st_dev, status.st_ino) in self.live]

    def _missing(self, here: set[tuple[int, int]]) -> list[Followed]:
        """Files that are not where they were: renamed to where nobody looks, deleted, or moved away."""
        gone = [self.live[identity] for identity in self.live.keys() - here]
        gone += [f for f in self.lost.values() if not f.gone]
        folders: dict[str, Folder] = {}
        out = []
        for file in gone:
            folder = os.path.dirname(file.path)
            if folder not in folders:
                folders[folder] = Folder(folder, here)
            if self._moved(file, folders[folder]):
                self._outside.add(file.seen)
                out.append(file)
            elif file.seen not in self.lost:
                self._leave(file)
                if isinstance(file.content, Plain):
                    self.adrift[file.seen] = file
                    out.append(file)
                else:
                    self._lose(file)
        return out

    def _moved(self, file: Followed, folder: Folder) -> bool:
        """Whether a file, or a copy that rotation has made of it, lies beside where it was."""
        for path, status in folder.candidates(file):
            if (status.st_dev, status.st_ino) not in self.live and file.offset and self._holds(path, status, file):
                self._place(file, path, status)
                return True
        return False

    def _lose(self, file: Followed, *, unsure: bool = False) -> None:
        """A file that cannot be read any more, unless it is found again under another name."""
        file.close()
        self._leave(file)
        file.size = -1 if unsure else file.size
        self.lost[file.seen] = file

    def _say_what_is_gone(self) -> None:
        """Once for every file whose end has not been seen."""
        gone = [f for f in self.lost.values() if not f.gone]
        for file in gone:
            file.gone = True
        unsure = [f.path for f in gone if f.size != f.offset and f.offset and not f.taken]
        if unsure:
            more = f" and {len(unsure) - 1} more" if len(unsure) > 1 else ""
            self._tell(
                f"{unsure[0]}{more}: followed before, and now gone, cut short or written anew; what was added to it since it was"
                " last looked at is not known. Rotate by renaming, or keep the copy beside it"
            )

    # Files that are not

    def _decide(self, path: str, status: os.stat_result, begin: Callable[[str, os.stat_result], Followed]) -> Followed | None:
        """A known file in a new place, a new file, or one of which that is not clear yet."""
        try:
            content = opened(path)
        except OSError as error:
            self._tell(f"{path}: cannot be read: {error.strerror or error}")
            return None
        with closing(content), suppress(EOFError):  # compressed, and not all there yet
            return self._decided(path, status, content, begin)
        return None

    def _decided(
        self, path: str, status: os.stat_result, content: Content, begin: Callable[[str, os.stat_result], Followed]
    ) -> Followed | None:
        if not content.read(1, 0):
            return None
        for file in self._once_called(former_names(path)):
            if self.live.get(file.identity) is file:
                if path != file.path and self._may_be_copy(content, path, status, file):
                    self._tell(f"{path}: a copy of {file.path}, as it looks: it is read only if that is cut short or goes")
                    return None
            elif file.offset and (path.endswith(PACKED) or status.st_size >= file.offset) and is_same(file, content):
                return self._place(file, path, status)
        return self._place(begin(path, status), path, status)

    def _once_called(self, names: list[str]) -> list[Followed]:
        """Files that have, or had, one of these names. Whoever is lost or adrift comes first."""
        if self._by_name is None:
            self._by_name = {}
            for file in (*self.lost.values(), *self.adrift.values()):
                for name in {file.path, file.first_path}:
                    self._by_name.setdefault(name, []).append(file)
            for file in self.live.values():
                self._by_name.setdefault(file.path, []).append(file)
        found = [file for name in names for file in self._by_name.get(name, ())]
        return sorted(found, key=lambda f: f.identity in self.live)

    def _may_be_copy(self, content: Content, path: str, status: os.stat_result, file: Followed) -> bool:
        if not file.offset:
            return False
        if path.endswith(PACKED) or status.st_size >= file.offset:
            return is_same(file, content)
        of = file.content or opened(file.path)
        try:
            return is_copy_so_far(content, status.st_size, of)
        finally:
            if file.content is None:
                of.close()


class Folder:
    """The files beside one that is missing, by number and by the names they may have had."""

    def __init__(self, folder: str, here: set[tuple[int, int]]) -> None:
        """All but those that are known to be somewhere."""
        self.by_identity: dict[tuple[int, int], Found] = {}
        self.by_name: dict[str, list[Found]] = {}
        for path, status in found_in(folder):
            if (status.st_dev, status.st_ino) not in here:
                self.by_identity[status.st_dev, status.st_ino] = (path, status)
                for name in former_names(path):
                    self.by_name.setdefault(name, []).append((path, status))

    def candidates(self, file: Followed) -> list[Found]:
        moved = self.by_identity.get(file.identity)
        return [*([moved] if moved else []), *self.by_name.get(file.path, ())]

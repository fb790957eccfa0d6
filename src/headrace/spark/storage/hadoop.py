"""Hadoop's file systems as Spark has them: whatever a session can write to, by way of its JVM. Only the driver has one.

Nothing here needs a rename that is all or nothing for more than one file: object stores copy a file whole, then delete the old.
"""

from __future__ import annotations

import io
import uuid
from typing import TYPE_CHECKING, Any

from headrace.spark.storage.storage import join, parent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND_COPY = "~"


class HadoopStorage:
    """Any file system of Spark, seen from the driver."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()

    def _at(self, path: str) -> tuple[Any, Any]:
        place = self._jvm.org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(self._conf), place

    def names(self, folder: str) -> list[str]:
        system, place = self._at(folder)
        return sorted(status.getPath().getName() for status in system.listStatus(place)) if system.exists(place) else []

    def exists(self, path: str) -> bool:
        system, place = self._at(path)
        return bool(system.exists(place))

    def is_folder(self, path: str) -> bool:
        system, place = self._at(path)
        return bool(system.exists(place) and system.getFileStatus(place).isDirectory())

    def read(self, path: str) -> bytes | None:
        """As `Storage.read`: of the two copies, the first that is whole."""
        for copy in (path, path + SECOND_COPY):
            data = self.whole(copy)
            if data is not None and data.endswith(b"\n"):
                return data
        return None

    def whole(self, path: str) -> bytes | None:
        system, place = self._at(path)
        if not system.exists(place):
            return None
        stream = system.open(place)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write(self, path: str, data: bytes) -> None:
        """As `Storage.write`. A file that is written again is gone until it is whole, so there is a second copy meanwhile."""
        self._create(path + SECOND_COPY, data)
        self._create(path, data)
        self.delete(path + SECOND_COPY)

    def add(self, path: str, data: bytes) -> None:
        """As `Storage.add`: a hidden file, whole, then a rename, which is all or nothing for one file, or a copy that is."""
        folder, name = parent(path)
        hidden = join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        self._create(hidden, data)
        system, place = self._at(path)
        if not system.rename(self._at(hidden)[1], place):
            raise OSError(f"cannot write {path}")

    def _create(self, path: str, data: bytes) -> None:
        system, place = self._at(path)
        stream = system.create(place, True)
        try:
            for start in range(0, len(data), io.DEFAULT_BUFFER_SIZE * 512):
                stream.write(data[start : start + io.DEFAULT_BUFFER_SIZE * 512])
        finally:
            stream.close()

    def make(self, folder: str) -> None:
        system, place = self._at(folder)
        system.mkdirs(place)

    def delete(self, path: str) -> None:
        system, place = self._at(path)
        system.delete(place, True)

    def fetch(self, path: str, here: str) -> None:
        system, place = self._at(path)
        system.copyToLocalFile(False, place, self._jvm.org.apache.hadoop.fs.Path(f"file:{here}"), True)

    def send(self, here: str, path: str) -> None:
        system, place = self._at(path)
        system.copyFromLocalFile(False, True, self._jvm.org.apache.hadoop.fs.Path(f"file:{here}"), place)

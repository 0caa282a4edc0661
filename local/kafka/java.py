"""Commands that run a class of Kafka on Java, with an archive of loaded classes (AppCDS) where there is one.

Most of a short run is the start of Java, which the archive shortens. `local.kafka.class_archive` writes it."""

import hashlib
import shutil
from pathlib import Path

from local.downloads import cache_folder, kafka_jars

# Short lives: compiling less starts sooner, and one thread collects less garbage than two cores' worth of them.
OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")
# An archive that another Java made, or of other jars, is ignored; the output is to be Kafka's alone.
QUIET = ("-Xshare:auto", "-Xlog:disable", "-Xlog:all=off:stderr")


def java(*arguments: str, heap_megabytes: int, writes_archive: Path | None = None) -> list[str]:
    """Returns a command that runs a main class of Kafka, with `arguments` as after `java -cp …`.

    With `writes_archive`, Java writes an archive to that path when it ends, and uses none."""
    archive = f"ArchiveClassesAtExit={writes_archive}" if writes_archive else f"SharedArchiveFile={archive_path()}"
    # Archives fit a class path letter by letter, so its order must not be that of the folder.
    class_path = ":".join(str(jar) for jar in sorted(kafka_jars().glob("*.jar")))
    return ["java", f"-Xmx{heap_megabytes}m", *OPTIONS, *QUIET, f"-XX:{archive}", "-cp", class_path, *arguments]


def archive_path() -> Path:
    """Returns where the archive for these jars and this Java is, or would be."""
    program = shutil.which("java")
    version = Path(program).resolve().stat().st_mtime_ns if program else 0
    of = f"{program} {version} {kafka_jars()}"
    return cache_folder() / f"kafka-classes-{hashlib.sha256(of.encode()).hexdigest()[:12]}.jsa"

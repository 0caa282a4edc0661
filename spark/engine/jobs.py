"""What Spark's UI says of jobs, how many tasks run at once, and the end of all of them: by Spark Connect in other words
than in this process."""

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

GROUP = "kafka-lag-report"
PROBED = 1 << 16


def describe(session: SparkSession, said: str) -> None:
    """Of the jobs that this thread starts from now on. Connect has tags, which may have no commas, in their place."""
    if is_remote():
        session.clearTags()
        session.addTag(said.replace(",", ""))
    else:
        session.sparkContext.setJobGroup(GROUP, said)


def master_of(session: SparkSession) -> str:
    """As Spark writes it; of the server, by Connect."""
    return session.conf.get("spark.master", "") or ""


def is_on_one_machine(session: SparkSession) -> bool:
    return master_of(session).startswith("local")


def parallelism(session: SparkSession) -> int:
    """How many tasks can run side by side."""
    if not is_remote():
        return session.sparkContext.defaultParallelism
    from pyspark.sql import functions as F  # noqa: PLC0415 -- slow to load

    return session.range(PROBED).select(F.spark_partition_id()).distinct().count()


def cancel(session: SparkSession) -> None:
    """All jobs; from any thread."""
    if is_remote():
        session.interruptAll()
    else:
        session.sparkContext.cancelAllJobs()

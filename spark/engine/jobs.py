"""What Spark's UI says of jobs, how many tasks run at once, and the end of all of them: by Spark Connect in other words
than in this process."""

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

Spark = SparkContext | SparkSession
"""A context alone is enough for tasks that are an RDD. A session is a context with SQL, which takes 1.3 s of CPU."""

GROUP = "kafka-lag-report"
PROBED = 1 << 16


def context_of(spark: Spark) -> SparkContext:
    """By Spark Connect there is none."""
    return spark if isinstance(spark, SparkContext) else spark.sparkContext


def setting(spark: Spark, name: str, default: str = "") -> str:
    """As Spark writes it; by Connect, of the server."""
    conf = spark.getConf() if isinstance(spark, SparkContext) else spark.conf
    return conf.get(name, default) or default


def describe(spark: Spark, said: str) -> None:
    """Of the jobs that this thread starts from now on. Connect has tags, which may have no commas, in their place."""
    if not isinstance(spark, SparkContext) and is_remote():
        spark.clearTags()
        spark.addTag(said.replace(",", ""))
    else:
        context_of(spark).setJobGroup(GROUP, said)


def master_of(spark: Spark) -> str:
    return setting(spark, "spark.master")


def is_on_one_machine(spark: Spark) -> bool:
    return master_of(spark).startswith("local")


def parallelism(spark: Spark) -> int:
    """How many tasks can run side by side."""
    if isinstance(spark, SparkContext) or not is_remote():
        return context_of(spark).defaultParallelism
    from pyspark.sql import functions as F  # noqa: PLC0415 -- slow to load

    return spark.range(PROBED).select(F.spark_partition_id()).distinct().count()


def cancel(spark: Spark) -> None:
    """All jobs; from any thread."""
    if not isinstance(spark, SparkContext) and is_remote():
        spark.interruptAll()
    else:
        context_of(spark).cancelAllJobs()

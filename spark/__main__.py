"""`python -m spark`, and the file that spark-submit runs: nothing but the command line."""

from spark.cli import main

main()

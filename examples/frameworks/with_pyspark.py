"""Score recorded answers in a Spark data frame, by a function on pandas series."""

import os
import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

from snne_guard import score


def uncertainty(answers: pd.Series, samples: pd.Series) -> pd.Series:
    rows = zip(answers, samples, strict=True)
    us = [score([answer, *drawn]).uncertainty for answer, drawn in rows]
    return pd.Series(us, index=answers.index, dtype="float64")


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    recording = [
        ("1", "Paris", ["Paris", "paris."]),
        ("2", "In 1912", ["In 1871", "Nobody knows"]),
    ]
    frame = spark.createDataFrame(recording, ["id", "main_answer", "samples"])
    u = pandas_udf(uncertainty, "double")("main_answer", "samples")
    for row in frame.withColumn("u", u).collect():
        print(row.id, f"{row.u:.2f}")
    spark.stop()

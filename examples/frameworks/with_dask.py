"""Score recorded answers in a Dask data frame, a partition at a time."""

import dask.dataframe as dd
import pandas as pd

from snne_guard import score


def uncertainty(answers: pd.Series, samples: pd.Series) -> pd.Series:
    rows = zip(answers, samples, strict=True)
    us = [score([answer, *drawn]).uncertainty for answer, drawn in rows]
    return pd.Series(us, index=answers.index, dtype="float64")


def scored(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(u=uncertainty(part["main_answer"], part["samples"]))


if __name__ == "__main__":
    recording = pd.DataFrame(
        {
            "id": ["1", "2"],
            "main_answer": ["Paris", "In 1912"],
            "samples": [["Paris", "paris."], ["In 1871", "Nobody knows"]],
        }
    )
    recording.to_parquet("recording.parquet")
    frame = dd.read_parquet("recording.parquet")
    frame = frame.map_partitions(scored, meta=recording.iloc[:0].assign(u=0.0))
    for row in frame.compute().itertuples():
        print(row.id, f"{row.u:.2f}")

"""Archives in the format of the chess challenge. The project may not distribute the
real ones."""

import io
import zipfile

import numpy as np
import pandas as pd
from toy_register import sha256

COLUMNS = ["PTID", "MonthID", "WhitePlayer", "BlackPlayer", "WhiteScore"]


def zipped(name, text):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, text)
    return stream.getvalue()


def write_chess(folder, games):
    """Write three archives with one row per game, and the list of their hashes."""
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(games)), 3), start=1):
        name = f"primary_training_part{number}"
        table = pd.DataFrame(np.asarray(games)[part], columns=COLUMNS)
        table = table.astype(dict.fromkeys(COLUMNS[:4], int))
        (folder / f"{name}.zip").write_bytes(
            zipped(f"{name}.csv", table.to_csv(index=False))
        )
    sums = [f"{sha256(path.read_bytes())}  {path.name}" for path in folder.iterdir()]
    (folder / "SHA256SUMS").write_text("\n".join(sums))

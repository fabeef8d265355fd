"""A register of toy files, with a mirror, a cache, and a server for them."""

import hashlib
import http.server
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import rdata

from preflearn.datasets import registry, storage
from preflearn.datasets.registry import RegisteredFile


class Toy:
    """Files that a test writes and registers, all in one folder."""

    def __init__(self, folder, monkeypatch):
        self.mirror = folder / "mirror"
        self.cache = folder / "cache"
        self.mirror.mkdir()
        self.rows = []
        monkeypatch.setattr(
            registry,
            "registered_files",
            lambda: [RegisteredFile(**row) for row in self.rows],
        )
        monkeypatch.setattr(registry, "cache_folder", lambda: self.cache)
        monkeypatch.setattr(storage, "_USED", {})
        monkeypatch.setenv("PREFLEARN_DATA", str(self.mirror))
        monkeypatch.setenv("PREFLEARN_OFFLINE", "1")

    def add(
        self,
        dataset,
        file,
        content,
        *,
        at="mirror",
        known=True,
        url="http://127.0.0.1:9/none",
    ):
        """Register a file, with addresses separated by spaces; put it into a folder, or
        nowhere (None)."""
        row = {"dataset": dataset, "file": file, "urls": url, "licence": "toy licence"}
        row |= {"citation": "Toy 2000", "seen": "2000-01-01"}
        row["sha256"], row["bytes"] = (
            (sha256(content), str(len(content))) if known else ("", "")
        )
        self.rows.append(row)
        return self.put(dataset, file, content, at) if at else None

    def put(self, dataset, file, content, at):
        path = {"mirror": self.mirror, "cache": self.cache}[at] / dataset / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def as_objects(value):
    """Return a frame with strings as objects, the only kind of string that rdata
    writes."""
    if not isinstance(value, pd.DataFrame):
        return value
    return value.astype(dict.fromkeys(value.columns[value.dtypes == "str"], object))


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@contextmanager
def server(content=b"", status=200, promised=None, headers=None, body=None, answers=()):
    """Serve bytes at every path; yield the address and the list of requested paths.

    Without `headers`, the answer has a content length; `body` writes the answer to a
    stream itself. `answers`, pairs of a status and headers, come first, one for each
    request, without content.
    """
    asked = []
    first = iter(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if (early := next(first, None)) is not None:
                self.send_response(early[0])
                for name, value in early[1].items():
                    self.send_header(name, value)
                return self.end_headers()
            self.send_response(status)
            promise = {"Content-Length": str(promised or len(content))}
            for name, value in (promise if headers is None else headers).items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # the client may have closed the connection
                body(self.wfile) if body else self.wfile.write(content)
            return None

        def log_message(self, *_):
            """Keep the output of the tests clean."""

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(
        target=running.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/file", asked
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def add_r_files(toy, folder, score=90.0):
    """Register a small file for each loader of R files."""
    games = {"date": [0.0, -1.0], "season": [1970.0, 1970.0], "neutral": [False, True]}
    games |= {
        "team1": ["TRH", "é"],
        "team2": ["é", "LAL"],
        "score1": [score, 2.0],
        "score2": [80.0, 2.0],
    }
    cars = {"mpg": [18.0, 15.5], "cylinders": [8.0, 4.0], "name": ["a", "b"]}
    women = {"age": [50.0, 31.0], "diabetes": pd.Categorical(["pos", "neg"])}
    files = {
        ("nba", "nba_elo.rda"): {"nba_elo": pd.DataFrame(games)},
        ("auto", "Auto.rda"): {"Auto": pd.DataFrame(cars)},
        ("diabetes", "PimaIndiansDiabetes.rda"): {
            "PimaIndiansDiabetes": pd.DataFrame(women)
        },
        ("mixture", "mixture.example.RData"): {
            "mixture.example": {"x": np.eye(2), "y": np.array([0.0, 1.0])}
        },
    }
    toy.rows.clear()
    for (dataset, file), objects in files.items():
        rdata.write_rda(
            folder / file, {name: as_objects(one) for name, one in objects.items()}
        )
        toy.add(dataset, file, (folder / file).read_bytes())

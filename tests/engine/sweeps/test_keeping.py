"""Rows on disk and on a cluster: a stop keeps them, a lost worker costs nothing, the bytes are
always the same.
"""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import LocalCluster, Security
from pyarrow import parquet

import loopscope
from loopscope.errors import EngineError, InputError
from loopscope.sweeps.cluster import Cluster
from loopscope.sweeps.job import Stop, rows_in_parallel
from tests.engine.sweeps.chunks import numbers_of, order_and_chunks

COLLATZ = Path("sample_models/collatz/model.xml")


def certificates(folder: Path) -> list[str]:
    """Write a certificate that signs itself, and return the names of CA, certificate and key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopscope test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(certificate.public_bytes(encoding))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, *plain))
    return [str(folder / name) for name in ("cert.pem", "cert.pem", "key.pem")]


def kept(path: Path, **options: Any) -> bytes:
    loopscope.sweep(
        loopscope.read_model(COLLATZ), "number=1..600", seconds=False, out=path, **options
    ).run()
    assert not path.with_name(path.name + ".part").exists()
    return path.read_bytes()


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers_or_lanes(tmp_path: Path) -> None:
    alone = kept(tmp_path / "alone.parquet", lanes=False, workers=1)
    assert kept(tmp_path / "lanes.parquet") == alone
    assert kept(tmp_path / "two.parquet", lanes=False, workers=2) == alone
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        assert (
            kept(tmp_path / "cluster.parquet", lanes=False, scheduler=cluster.scheduler_address)
            == alone
        )


@pytest.mark.slow
def test_a_lost_worker_of_a_cluster_has_its_chunks_done_again() -> None:
    """One of two is killed between two chunks; no row is missing."""
    order, batches = order_and_chunks()
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        rows = rows_in_parallel(
            Cluster(order, cluster.scheduler_address, None), iter(batches), Stop()
        )
        first = next(rows)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert numbers_of([first, *rows]) == list(range(1, 161))


@pytest.mark.slow
def test_a_cluster_that_is_secured_needs_the_files_of_its_certificates(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    security = Security(
        tls_ca_file=files[0],
        tls_scheduler_cert=files[1],
        tls_scheduler_key=files[2],
        tls_worker_cert=files[1],
        tls_worker_key=files[2],
        tls_client_cert=files[1],
        tls_client_key=files[2],
        require_encryption=True,
    )
    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, security=security
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://")
        secured = kept(
            tmp_path / "secured.parquet", lanes=False, scheduler=address, scheduler_tls=files
        )
        with pytest.raises(EngineError, match="there is no Dask scheduler at tls://"):
            loopscope.sweep(loopscope.read_model(COLLATZ), "number=1..3", scheduler=address).run()
        with pytest.raises(
            InputError, match=r"there is no file nowhere\.pem; expected CA, certificate and key"
        ):
            loopscope.sweep(
                loopscope.read_model(COLLATZ),
                "number=1..3",
                scheduler=address,
                scheduler_tls=["nowhere.pem", *files[1:]],
            ).run()
    assert secured == kept(tmp_path / "alone.parquet", lanes=False, workers=1)


def test_a_missing_extra_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "loopscope.sweeps.cluster")
    with pytest.raises(
        EngineError, match=r'needs the extra `cluster`: pip install "loopscope\[cluster\]"$'
    ):
        loopscope.sweep(
            loopscope.read_model(COLLATZ), "number=1..3", scheduler="tcp://127.0.0.1:9"
        ).run()


def test_files_of_certificates_belong_to_a_scheduler() -> None:
    with pytest.raises(InputError, match="needs the address of a scheduler"):
        loopscope.sweep(
            loopscope.read_model(COLLATZ),
            "number=1..3",
            scheduler_tls=["ca.pem", "cert.pem", "key.pem"],
        )


@pytest.mark.slow
def test_no_scheduler_there_is_a_sentence() -> None:
    with pytest.raises(EngineError, match=r"there is no Dask scheduler at tcp://127\.0\.0\.1:9"):
        loopscope.sweep(
            loopscope.read_model(COLLATZ), "number=1..3", scheduler="tcp://127.0.0.1:9"
        ).run()


def test_a_stop_keeps_rows_and_resume_goes_on(tmp_path: Path) -> None:
    path, model = tmp_path / "runs.parquet", loopscope.read_model(COLLATZ)
    sweep = loopscope.sweep(model, "number=1..600", seconds=False, lanes=False, workers=1, out=path)
    for number, _ in enumerate(sweep.batches()):
        if number == 2:
            sweep.stop()
    assert not sweep.is_complete
    assert parquet.read_table(path).num_rows == sweep.summary.rows == 48
    part = path.with_name("runs.parquet.part")
    part.write_bytes(part.read_bytes()[:-100])  # a crash in the middle of a chunk
    onwards = loopscope.sweep(
        model, "number=1..600", seconds=False, lanes=False, workers=1, out=path, resume=True
    )
    onwards.run()
    assert onwards.is_complete
    assert path.read_bytes() == kept(tmp_path / "whole.parquet")


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_rows_that_the_disk_has_damaged_are_computed_again(share: float, tmp_path: Path) -> None:
    """Arrow reads wherever a damaged stream sends it, and a number that has changed is a number
    like others.
    """
    path, model = tmp_path / "runs.parquet", loopscope.read_model(COLLATZ)
    sweep = loopscope.sweep(model, "number=1..600", seconds=False, lanes=False, workers=1, out=path)
    for number, _ in enumerate(sweep.batches()):
        if number == 2:
            sweep.stop()
    part = path.with_name("runs.parquet.part")
    data = bytearray(part.read_bytes())
    at = int(share * len(data))
    data[at : at + 64] = bytes(byte ^ 0xFF for byte in data[at : at + 64])
    part.write_bytes(data)
    onwards = loopscope.sweep(
        model, "number=1..600", seconds=False, lanes=False, workers=1, out=path, resume=True
    )
    onwards.run()
    assert onwards.is_complete
    assert path.read_bytes() == kept(tmp_path / "whole.parquet")


def test_rows_of_another_sweep_are_not_taken_for_its_own(tmp_path: Path) -> None:
    path, model = tmp_path / "runs.parquet", loopscope.read_model(COLLATZ)
    sweep = loopscope.sweep(model, "number=1..200", seconds=False, lanes=False, out=path)
    next(sweep.batches())
    sweep = loopscope.sweep(model, "number=1..200", seconds=False, lanes=False, out=path)
    for _ in sweep.batches():
        sweep.stop()
    with pytest.raises(InputError, match="holds rows of another sweep"):
        loopscope.sweep(model, "number=1..300", seconds=False, out=path, resume=True).run()
    assert path.with_name("runs.parquet.part").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("runs.csv", "ends in .parquet"), ("no/runs.parquet", "there is no folder")],
)
def test_where_rows_cannot_go(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        loopscope.sweep(loopscope.read_model(COLLATZ), "number=1..2", out=tmp_path / name).run()

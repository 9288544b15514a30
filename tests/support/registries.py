"""Registries of container images on this machine, what is pulled from them, and how many bytes that takes of the one behind."""

import gzip
import hashlib
import io
import json
import random
import socket
import socketserver
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_OCI = "application/vnd.oci.image"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry that runs. ``place``: host and port; ``storage``: where its blobs lie."""

    place: str
    storage: Path

    def holds(self, digest: str) -> bool:
        algorithm, _, number = digest.partition(":")
        return (self.storage / "docker/registry/v2/blobs" / algorithm / number[:2] / number / "data").exists()


@contextmanager
def registry(directory: Path, **more: Any) -> Iterator[Registry]:
    """Run Debian's docker-registry; ``more`` of its settings, such as ``proxy``."""
    directory.mkdir()
    there = Registry(f"127.0.0.1:{free_port()}", directory / "storage")
    settings = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(there.storage)}, "delete": {"enabled": True}},
        "http": {"addr": there.place},
        **more,
    }
    (directory / "config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = ["docker-registry", "serve", directory / "config.yml"]
    with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(there.place, process, directory / "log")
            yield there
        finally:
            process.kill()


def wait_for(place: str, process: subprocess.Popen[bytes], log: Path) -> None:
    host, _, port = place.partition(":")
    for _ in range(200):
        assert process.poll() is None, log.read_text(encoding="utf-8")
        with suppress(ConnectionRefusedError):
            socket.create_connection((host, int(port))).close()
            return
        time.sleep(0.05)
    raise AssertionError(f"{place} does not listen\n{log.read_text(encoding='utf-8')}")


class Counter(socketserver.ThreadingTCPServer):
    """A way to a registry that counts what comes back."""

    daemon_threads = True

    def __init__(self, behind: str) -> None:
        super().__init__(("127.0.0.1", 0), _PassOn)
        host, _, port = behind.partition(":")
        self.behind = host, int(port)
        self.place = f"127.0.0.1:{self.server_address[1]}"
        self.given = 0
        self.lock = threading.Lock()


class _PassOn(socketserver.BaseRequestHandler):
    server: Counter

    def handle(self) -> None:
        with socket.create_connection(self.server.behind) as other:
            back = threading.Thread(target=self.pass_back, args=(other,))
            back.start()
            with suppress(OSError):
                while data := self.request.recv(65536):
                    other.sendall(data)
                other.shutdown(socket.SHUT_WR)
            back.join()

    def pass_back(self, other: socket.socket) -> None:
        with suppress(OSError):
            while data := other.recv(65536):
                with self.server.lock:
                    self.server.given += len(data)
                self.request.sendall(data)
            self.request.shutdown(socket.SHUT_WR)


@contextmanager
def counted(behind: str) -> Iterator[Counter]:
    with Counter(behind) as counter:
        thread = threading.Thread(target=counter.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        try:
            yield counter
        finally:
            counter.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True)
class MadeImage:
    """An image in an OCI layout. ``blobs``: digests of config and layers; ``size``: all their bytes."""

    layout: Path
    blobs: tuple[str, ...]
    size: int


def made_image(layout: Path, *layers: int) -> MadeImage:
    """Make an image of layers of so many bytes that nothing compresses."""
    (layout / "blobs/sha256").mkdir(parents=True)
    packed = [_layer(number, size) for number, size in enumerate(layers)]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(gzip.decompress(one)).hexdigest()}" for one in packed]},
    }
    config_at = _put(layout, json.dumps(config).encode(), f"{_OCI}.config.v1+json")
    layers_at = [_put(layout, one, f"{_OCI}.layer.v1.tar+gzip") for one in packed]
    manifest = {"schemaVersion": 2, "mediaType": f"{_OCI}.manifest.v1+json", "config": config_at, "layers": layers_at}
    manifest_at = _put(layout, json.dumps(manifest).encode(), f"{_OCI}.manifest.v1+json")
    index = {"schemaVersion": 2, "manifests": [manifest_at | {"annotations": {"org.opencontainers.image.ref.name": "made"}}]}
    (layout / "index.json").write_text(json.dumps(index), encoding="utf-8")
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")
    blobs = (config_at, *layers_at)
    return MadeImage(layout, tuple(blob["digest"] for blob in blobs), sum(blob["size"] for blob in blobs))


def _layer(number: int, size: int) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo(f"file-{number}")
        entry.size = size
        tar.addfile(entry, io.BytesIO(random.Random(number).randbytes(size)))
    return gzip.compress(archive.getvalue(), 1, mtime=0)


def _put(layout: Path, content: bytes, kind: str) -> dict[str, Any]:
    number = hashlib.sha256(content).hexdigest()
    (layout / "blobs/sha256" / number).write_bytes(content)
    return {"mediaType": kind, "digest": f"sha256:{number}", "size": len(content)}


def skopeo(*words: str | Path, **environment: str) -> str:
    """Copy or look at images with Skopeo, which needs no daemon."""
    done = subprocess.run(
        ["skopeo", "--insecure-policy", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", **environment},
    )
    assert done.returncode == 0, f"skopeo {' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
    return done.stdout

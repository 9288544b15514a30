"""The devices that gpu-lease finds, on trees and answers as the kernel and nvidia-smi write them. No machine of the tests has a card."""

import json
import stat
from pathlib import Path

import pytest

from gpu_lease import nvidia
from gpu_lease.devices import Places, found, in_use
from gpu_lease.environment import changes
from gpu_lease.errors import NotPossibleError
from gpu_lease.kfd import architecture
from gpu_lease.machine import RealMachine
from gpu_lease.records import Lease, Request, Ticket

# A Radeon Pro V620 (Navi 21), in the order of drivers/gpu/drm/amd/amdkfd/kfd_topology.c.
V620 = {
    "cpu_cores_count": 0,
    "simd_count": 144,
    "mem_banks_count": 1,
    "caches_count": 206,
    "io_links_count": 1,
    "p2p_links_count": 0,
    "cpu_core_id_base": 0,
    "simd_id_base": 2147487744,
    "max_waves_per_simd": 16,
    "lds_size_in_kb": 64,
    "gds_size_in_kb": 0,
    "num_gws": 64,
    "wave_front_size": 32,
    "array_count": 8,
    "simd_arrays_per_engine": 2,
    "cu_per_simd_array": 10,
    "simd_per_cu": 2,
    "max_slots_scratch_cu": 32,
    "gfx_target_version": 100300,
    "vendor_id": 4098,
    "device_id": 29601,
    "location_id": 768,
    "domain": 0,
    "drm_render_minor": 128,
    "hive_id": 0,
    "num_sdma_engines": 2,
    "num_cp_queues": 8,
    "max_engine_clk_fcompute": 2570,
    "local_mem_size": 0,
    "fw_version": 96,
    "capability": 671588992,
    "debug_prop": 1511,
    "sdma_fw_version": 76,
    "unique_id": 0xAD021EB5AC9C4EDB,
    "num_xcc": 1,
    "max_engine_clk_ccompute": 3500,
}
PROCESSOR = V620 | {"cpu_cores_count": 32, "simd_count": 0, "gfx_target_version": 0, "drm_render_minor": 0, "unique_id": 0}


class Tree:
    """A /sys, a /dev and a /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.places = Places(root / "devices.json", root / "sys", root / "dev", root / "proc", str(root / "nvidia-smi"))
        self.nodes = 0

    def written(self, path: str, text: str = "") -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        return place

    def amd(self, name: str = "sienna_cichlid", gpu_id: int = 0, *, node: bool = True, **facts: int) -> None:
        """One node of the topology; a processor where it has no name."""
        folder = f"sys/class/kfd/kfd/topology/nodes/{self.nodes}"
        facts = (V620 if name else PROCESSOR) | facts
        self.written(f"{folder}/properties", "".join(f"{key} {value}\n" for key, value in facts.items()))
        self.written(f"{folder}/gpu_id", f"{gpu_id}\n")
        self.written(f"{folder}/name", f"{name}\n")
        if name and node:
            self.written(f"dev/dri/renderD{facts['drm_render_minor']}")
        self.nodes += 1

    def nvidia(self, minor: int, bus: str, uuid: str, excluded: str = "No") -> None:
        """One card as /proc/driver/nvidia/gpus describes it."""
        described = [
            ("Model", "\t\t NVIDIA A10G"),
            ("IRQ", "  \t\t 42"),
            ("GPU UUID", f"\t {uuid}"),
            ("Video BIOS", "\t 94.04.42.00.01"),
            ("Bus Type", "\t PCIe"),
            ("DMA Size", "\t 47 bits"),
            ("DMA Mask", "\t 0x7fffffffffff"),
            ("Bus Location", f"\t {bus}"),
            ("Device Minor", f"\t {minor}"),
            ("GPU Firmware", "\t 535.129.03"),
            ("GPU Excluded", f"\t {excluded}"),
        ]
        lines = "".join(f"{name}: {value}\n" for name, value in described)
        self.written(f"proc/driver/nvidia/gpus/{bus}/information", lines)
        self.written(f"dev/nvidia{minor}")

    def nvidia_smi(self, cards: str = "", processes: str = "", *, script: str = "") -> None:
        """The program, which knows two questions; asked anything else, it fails as the real one does."""
        text = script or (
            '#!/bin/sh\n[ "$2" = --format=csv,noheader ] || exit 2\ncase $1 in\n'
            f"--query-gpu=pci.bus_id,uuid,compute_cap) printf '{cards}' ;;\n"
            f"--query-compute-apps=gpu_uuid,pid) printf '{processes}' ;;\n*) exit 2 ;;\nesac\n"
        )
        self.written("nvidia-smi", text).chmod(stat.S_IRWXU)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def told(*devices):
    lease = Lease(Ticket(1, Request()), tuple(device.id for device in devices))
    return {name: value for name, value in changes(lease, devices, "", "").items() if value and not name.startswith("GPU_LEASE")}


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (100300, "gfx1030"),
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (90006, "gfx906"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (80003, "gfx803"),
    ],
)
def test_an_architecture_is_called_as_the_compiler_calls_it(version, name):
    assert architecture(version) == name


def test_amd_s_cards_are_the_nodes_that_compute_and_have_a_render_node(tree):
    tree.amd("", 0)
    tree.amd("sienna_cichlid", 51008)
    tree.amd("aldebaran", 7019, gfx_target_version=90010, location_id=17160, domain=1, drm_render_minor=129, unique_id=0x00AB)
    first, second = found(tree.places)
    assert (first.id, first.kind, first.vendor, first.model, first.pci) == (
        "GPU-ad021eb5ac9c4edb",
        "gfx1030",
        "amd",
        "sienna_cichlid",
        "0000:03:00.0",
    )
    assert first.nodes == (f"{tree.root}/dev/kfd", f"{tree.root}/dev/dri/renderD128")
    assert (second.id, second.kind, second.pci) == ("GPU-00000000000000ab", "gfx90a", "0001:43:01.0")
    assert told(first, second) == {"ROCR_VISIBLE_DEVICES": "GPU-ad021eb5ac9c4edb,GPU-00000000000000ab"}


def test_a_card_without_a_number_of_its_own_is_named_by_its_place_as_the_runtime_counts(tree):
    """The runtime counts each node that computes, whether this machine may use it or not."""
    tree.amd("")
    tree.amd("vega10", node=False, unique_id=1)
    tree.amd("polaris10", unique_id=0, gfx_target_version=80003, drm_render_minor=129)
    [card] = found(tree.places)
    assert (card.id, card.kind) == ("amd-0000:03:00.0", "gfx803")
    assert told(card) == {"ROCR_VISIBLE_DEVICES": "1"}


def test_partitions_of_one_card_are_devices_of_their_own(tree):
    tree.amd("", 0)
    for minor in (128, 129):
        tree.amd("ip discovery", gfx_target_version=90402, drm_render_minor=minor)
    ids = [device.id for device in found(tree.places)]
    assert ids == ["GPU-ad021eb5ac9c4edb-renderD128", "GPU-ad021eb5ac9c4edb-renderD129"]
    assert told(*found(tree.places)) == {"ROCR_VISIBLE_DEVICES": "0,1"}


def test_a_card_with_a_queue_or_memory_of_a_process_is_in_use(tree):
    for number in range(4):
        tree.amd("sienna_cichlid", 100 + number, drm_render_minor=128 + number, unique_id=number + 1)
    tree.written("sys/class/kfd/kfd/proc/4711/queues/0/gpuid", "101\n")
    tree.written("sys/class/kfd/kfd/proc/4711/queues/0/type", "0\n")
    tree.written("sys/class/kfd/kfd/proc/4711/vram_100", "0\n")
    tree.written("sys/class/kfd/kfd/proc/4711/vram_102", "16777216\n")
    tree.written("sys/class/kfd/kfd/proc/4712/pasid", "100\n")
    used = in_use(found(tree.places), tree.places)
    assert used == {"GPU-0000000000000002": "process 4711", "GPU-0000000000000003": "process 4711"}


UUIDS = ["GPU-82523fd8-3897-f599-d088-ccd04ae45ec1", "GPU-edfee158-11c1-52b8-0517-92f30e7fac88"]


def two_nvidia(tree):
    tree.nvidia(0, "0000:00:1e.0", UUIDS[0])
    tree.nvidia(1, "0000:00:1f.0", UUIDS[1])
    for other in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"):
        tree.written(f"dev/{other}")


CARDS = f"00000000:00:1E.0, {UUIDS[0]}, 8.6\\n00000000:00:1F.0, {UUIDS[1]}, 9.0\\n"


def test_nvidia_s_cards_are_the_device_files_that_the_driver_describes(tree):
    two_nvidia(tree)
    tree.written("dev/nvidia7")
    tree.nvidia_smi(CARDS)
    first, second = found(tree.places)
    assert (first.id, first.kind, first.vendor, first.model, first.pci) == (UUIDS[0], "sm_86", "nvidia", "NVIDIA A10G", "0000:00:1e.0")
    assert (second.kind, second.nodes) == ("sm_90", (f"{tree.root}/dev/nvidia1",))
    assert told(first, second) == {"CUDA_VISIBLE_DEVICES": ",".join(UUIDS)}
    assert first.is_a("nvidia a10g")


def test_a_card_that_the_driver_excludes_is_none(tree):
    two_nvidia(tree)
    tree.nvidia(1, "0000:00:1f.0", UUIDS[1], "Yes")
    assert [device.id for device in found(tree.places)] == [UUIDS[0]]


def test_without_nvidia_smi_the_driver_s_own_description_is_enough(tree):
    two_nvidia(tree)
    assert [(device.id, device.kind) for device in found(tree.places)] == [(UUIDS[0], ""), (UUIDS[1], "")]
    assert in_use(found(tree.places), tree.places) == {}


def test_a_card_that_the_driver_has_not_woken_is_named_by_its_number(tree):
    tree.nvidia(0, "0000:00:1e.0", "GPU-????????-????-????-????-????????????")
    [card] = found(tree.places)
    assert (card.id, told(card)) == ("nvidia-0000:00:1e.0", {"CUDA_VISIBLE_DEVICES": "0"})


def test_a_card_with_a_compute_process_is_in_use(tree):
    two_nvidia(tree)
    tree.nvidia_smi(CARDS, f"{UUIDS[1]}, 4711\\n{UUIDS[1]}, 4712\\n")
    assert in_use(found(tree.places), tree.places) == {UUIDS[1]: "process 4712"}


@pytest.mark.parametrize("script", ["#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'; exit 255\n", "#!/bin/sh\nsleep 60\n"])
def test_where_nvidia_smi_fails_or_hangs_every_card_counts_as_in_use(tree, script, monkeypatch):
    monkeypatch.setattr(nvidia, "_SECONDS", 0.5)
    two_nvidia(tree)
    tree.nvidia_smi(script=script)
    assert in_use(found(tree.places), tree.places) == dict.fromkeys(UUIDS, "nvidia-smi does not answer")


def test_one_who_waits_asks_nvidia_smi_no_more_than_twice_a_minute(tree, monkeypatch):
    two_nvidia(tree)
    tree.nvidia_smi(script=f"#!/bin/sh\necho $1 >>{tree.root}/asked\n")
    machine = RealMachine(None, None, tree.places)
    for now in (0.0, 0.5, 29.0, 31.0):
        monkeypatch.setattr(machine, "now", lambda now=now: now)
        assert len(machine.devices()) == 2
    assert len((tree.root / "asked").read_text(encoding="ascii").splitlines()) == 2


def test_a_machine_without_a_driver_has_no_device_and_asks_no_program(tree):
    tree.nvidia_smi(script=f"#!/bin/sh\ntouch {tree.root}/asked\n")
    assert found(tree.places) == []
    assert in_use([], tree.places) == {}
    assert not (tree.root / "asked").exists()


def test_a_file_of_devices_is_believed_instead(tree):
    tree.amd()
    tree.written("devices.json", json.dumps({"devices": [{"id": "a", "kind": "gfx1100", "vendor": "amd", "nodes": ["/dev/kfd"]}]}))
    [device] = found(tree.places)
    assert (device.id, device.visible, device.nodes) == ("a", "a", ("/dev/kfd",))


def test_a_listed_card_that_the_kernel_shows_in_use_is_in_use(tree):
    tree.amd("sienna_cichlid", 101)
    tree.written("sys/class/kfd/kfd/proc/4711/queues/0/gpuid", "101\n")
    card = {"kind": "gfx1030", "vendor": "amd"}
    both = [{**card, "id": "left", "pci": "0000:03:00.0"}, {**card, "id": "right", "pci": "0000:04:00.0"}]
    tree.written("devices.json", json.dumps({"devices": both}))
    assert in_use(found(tree.places), tree.places) == {"left": "process 4711"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        ("{}", "'devices'"),
        ('{"devices": [{"kind": "a"}]}', "a device has an id"),
        ('{"devices": [{"id": "a", "colour": "red"}]}', "not: colour"),
        ('{"devices": [{"id": "a"}, {"id": "a"}]}', "two devices have the same id"),
    ],
)
def test_a_wrong_file_of_devices_is_one_line(tree, text, said):
    tree.written("devices.json", text)
    with pytest.raises(NotPossibleError, match=said) as error:
        found(tree.places)
    assert "\n" not in str(error.value)

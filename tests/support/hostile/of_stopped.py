"""What EC2 does to agents that are stopped: starts that fail in several ways, and what stopped machines keep from others."""

from support.hostile.drawn import MINUTE
from support.hostile.of_ec2 import about_stops
from support.hostile.unkind import Draw, Unkindness


def starts_never_connect(draw: Draw) -> Unkindness:
    """What was set up at the first boot only is missing at a start."""
    span = draw.span(20, 120, for_ever=0.15)

    def hangs(instance) -> bool:
        if instance.life:
            draw.bite()
        return instance.life > 0

    draw.while_it_lasts(span, draw.life.ec2.hangs, hangs)
    return about_stops(draw, span, set())


def machine_not_startable(draw: Draw) -> Unkindness:
    """EC2 refuses to start one machine, and then another."""
    span, world = draw.span(20, 120), draw.life.world
    code = draw.chance.choice(("InvalidParameterValue", "IncorrectInstanceState", "Unsupported"))

    def refuse() -> None:
        stopped = [instance for instance in world.alive() if instance.state == "stopped"]
        if stopped and not any(instance.refuses_to_start for instance in world.alive()):
            draw.chance.choice(stopped).refuses_to_start = code
            draw.bite()

    def release() -> None:
        for instance in world.alive():
            instance.refuses_to_start = ""

    draw.every(span, 5 * MINUTE, refuse)
    draw.at(span[1] + MINUTE, release)
    return about_stops(draw, span, set())


def addresses_short(draw: Draw) -> Unkindness:
    """A subnet, or a quota of volumes, has room for as many machines as there are, stopped ones too."""
    span, ec2 = draw.span(20, 90), draw.life.world.ec2
    code = draw.chance.choice(("InsufficientFreeAddressesInSubnet", "VolumeLimitExceeded"))
    room: list[int] = []

    class Full(dict):
        def __contains__(self, key: object) -> bool:
            return self.get(key) is not None

        def get(self, key: object, default: str | None = None) -> str | None:
            stopped = sum(instance.state == "stopped" for instance in ec2.instances.values())
            if not room and stopped:
                room.append(len([instance for instance in ec2.instances.values() if instance.alive()]))
            if stopped and sum(instance.alive() for instance in ec2.instances.values()) >= room[0]:
                draw.bite()
                return code
            return super().get(key, default)

    def begin() -> None:
        ec2.answers = Full(ec2.answers)

    def end() -> None:
        ec2.answers = dict(ec2.answers)

    draw.at(span[0], begin)
    draw.at(span[1], end)
    return draw.make(code, span, touches=lambda _build: True, strikes=lambda _instance: True, words={code, "makes-way"})


SWITCHES = {
    "starts-never-connect": starts_never_connect,
    "machine-not-startable": machine_not_startable,
    "addresses-short": addresses_short,
}

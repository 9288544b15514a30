"""Inbound agents: their secret, agent.jar, and the connection that a stand-in opens."""

from xml.sax.saxutils import escape

from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.nodes import secret_of

AGENT_JAR = b"PK\x05\x06" + bytes(18)  # an empty archive: nothing here runs it


def jnlp(node: str) -> bytes:
    """What ``jenkins-agent.jnlp`` says: the secret, then the name."""
    arguments = "".join(f"<argument>{escape(text)}</argument>" for text in (secret_of(node), node))
    return f"<jnlp><application-desc>{arguments}</application-desc></jnlp>".encode()


def connect(controller: Controller, node: str, secret: str) -> bool:
    """Let an agent connect; False: wrong secret, or no such node."""
    if node not in controller.nodes or secret != secret_of(node):
        return False
    controller.connect(node)
    return True

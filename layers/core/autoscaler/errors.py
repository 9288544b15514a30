"""Errors, named by what the loop should do about them."""


class AutoscalerError(Exception):
    """Base of our errors; the text is one line that a person can act on."""


class ConfigError(AutoscalerError):
    """A human must act: a setting, an event or a credential is wrong. Nothing was done."""


class EventRefusedError(ConfigError):
    """An event names what there is not, or asks for what must not be: who sent it is answered so, and nothing has failed."""


class TransientError(AutoscalerError):
    """The next pass will try again; nothing else retries."""


class NoAnswerError(TransientError):
    """It did not answer in time, and nothing took effect. Asking again in this pass would cost the others their time."""


class UnansweredError(TransientError):
    """The call may or may not have taken effect: read before doing it again."""


class UnansweredLaunchError(UnansweredError):
    """EC2 may have launched or not. The text is what it answered: the code of an error of its own, or nothing."""


class DoubtfulError(UnansweredError):
    """Something else answered in its place, such as a login page: it may or may not have taken effect. Others may still be asked."""


class ConflictError(TransientError):
    """Somebody else changed it first: re-read, and do nothing now."""


class LeaseHeldError(TransientError):
    """Another pass is acting on this fleet."""


class DeadlineError(TransientError):
    """No time is left to begin another step."""


class LaunchRefusedError(TransientError):
    """EC2 refused the launch request as a whole; nothing was launched. ``code`` is EC2's own word for it."""

    def __init__(self, code: str, message: str, denied: str = "") -> None:
        """Keep the code, which decides what is slowed down or paused. ``denied``: the action for which IAM gives no permission."""
        super().__init__(f"{code} ({denied}): {message}" if denied and denied not in message else f"{code}: {message}")
        self.code = code
        self.denied = denied

    @property
    def named(self) -> str:
        """EC2's code, and the action that is not allowed."""
        return f"{self.code} ({self.denied})" if self.denied else self.code


class StuckError(TransientError):
    """EC2 does not let us terminate, or stop, this instance: asking again at once would change nothing, and a person may have to act."""


class RefusedError(TransientError):
    """EC2 refuses this for one instance: after some tries it is given up, and done in another way."""


class MismatchError(TransientError):
    """EC2 knows the token with another request: the launch took effect once, settle it by tag."""


class RefusedBuildError(AutoscalerError):
    """Jenkins does not start this build, and will not when it is asked again: a person must look. Nothing was done."""

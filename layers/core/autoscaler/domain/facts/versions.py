"""Versions: what agents are launched from. A version of the launch template and, where the pool names a parameter, an image.

A version is text, such as "7" or "7 with ami-0123": so it is remembered, compared and told.
"""

_WITH = " with "


def version_of(template: str, image: str) -> str:
    """Join a version of a launch template and an image; "" where either is not known."""
    return f"{template}{_WITH}{image}" if template and image else ""


def parts_of(version: str) -> tuple[str, str]:
    """Split a version: that of its launch template, and its image; "" where it names none."""
    template, _, image = version.partition(_WITH)
    return template, image


def differ(one: str, other: str) -> bool:
    """Tell whether two versions are known not to be the same; one that names no image may have any."""
    if not one or not other:
        return False
    (template, image), (other_template, other_image) = parts_of(one), parts_of(other)
    return template != other_template or bool(image and other_image and image != other_image)


def told_follows(version: str, before: str) -> str:
    """Say that a version follows another one, in the terms in which they differ."""
    (template, image), (old_template, old_image) = parts_of(version), parts_of(before)
    if old_image and not image and template == old_template:
        return f"its launch template's own image follows {old_image}"
    if image and template == old_template:
        return f"image {image} follows {old_image or 'that of the launch template'}"
    return f"version {version} of its launch template follows {before}"


def told_outdated(version: str, current: str) -> str:
    """Say what an agent was launched from and what is launched now, likewise."""
    (template, image), (new_template, new_image) = parts_of(version), parts_of(current)
    if image and not new_image and template == new_template:
        return f"launched from image {image}, now it is its launch template's own"
    if image and new_image and template == new_template:
        return f"launched from image {image}, now it is {new_image}"
    return f"launched from version {version} of its launch template, now it is {current}"

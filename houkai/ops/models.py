"""Tell which model files are here: those of the package, and the originals pulled from the hub."""

from __future__ import annotations

from dataclasses import dataclass

from houkai.embed import hub, lockfile, minilm
from houkai.embed.hub import State


@dataclass(frozen=True)
class ModelFile:
    """One file of a model: where it comes from ("package" or "hub") and what is here of it."""

    model: str
    origin: str
    file: str
    bytes: int
    state: State
    path: str


def model_files(name: str | None = None, *, hashed: bool = False) -> list[ModelFile]:
    """Return every file that models.lock pins, of one model if named. Raises NotFound.

    Files of the right size are "present", or "verified" once their bytes are hashed too.
    """
    wanted = [hub.hub_model(name)] if name else list(hub.hub_models().values())
    found: list[ModelFile] = []
    for model in wanted:
        places = [("hub", model.folder, model.files)]
        if model.name == minilm.MODEL:
            bundled = lockfile.locked(model.name)
            places.insert(0, ("package", bundled.folder, bundled.files))
        for origin, folder, files in places:
            for file in files:
                path = folder / file.name
                state = hub.state(path, file, hashed=hashed)
                found.append(ModelFile(model.name, origin, file.name, file.bytes, state, str(path)))
    return found

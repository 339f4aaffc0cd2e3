"""What ``fedmf train`` trains: FedMF or FedMMF, and with a local head on top or without."""

from __future__ import annotations

from fedmf.cli.choices import MaskName, ModelName
from fedmf.data import Split
from fedmf.data.features import known_features
from fedmf.errors import ModelError, SettingError
from fedmf.masks import FedMMF, LocalHead
from fedmf.masks.combined import Combined
from fedmf.masks.recipes import Recipe, recipe
from fedmf.models import Factors, preset
from fedmf.models.presets import Preset
from fedmf.training import Trainer, mae, rmse

__all__ = ["Model", "chosen", "errors", "fit", "to_be_saved"]

Model = Factors | Combined


def chosen(
    model: ModelName, mask: MaskName | None, preset_name: str
) -> tuple[Preset, Recipe | None]:
    """Return what is trained federatedly, and FedMMF's mask and offset if there is one.

    Raises
    ------
    SettingError
        If there is no such preset, or a mask for FedMF.
    """
    if model is ModelName.FEDMMF:
        masked = recipe((mask or MaskName.RIDGE).value, preset_name)
        return masked.preset, masked
    if mask is not None:
        raise SettingError(f"--mask {mask} cannot go with --model {model}: take fedmmf")
    return preset(preset_name), None


def fit(trainer: Trainer, parts: Split, masked: Recipe | None, *, head: bool) -> Model:
    """Train, on masked ratings if there are masks, and let the users fit their heads.

    Raises
    ------
    DataError
        If nothing is known of the items that a mask needs.
    """
    model: Model
    known = known_features(parts.train) if masked is not None or head else None
    if masked is None:
        model = trainer.fit(parts.train, parts.test).factors_
    else:
        federated = FedMMF(masked.mask, trainer, offset=masked.offset)
        model = federated.fit(parts.train, parts.test, known).model_
    return LocalHead().fit(model, parts.train, known) if head else model


def errors(model: Model, parts: Split) -> dict[str, float]:
    """Return the errors with the heads on the test ratings, by their names in the document."""
    predictions = model.predict(parts.test.users, parts.test.items)
    return {
        "head_rmse": rmse(parts.test.values, predictions),
        "head_mae": mae(parts.test.values, predictions),
    }


def to_be_saved(model: Model) -> Factors | None:
    """Return the model as factors, or None where it cannot be written so (`NNMask`)."""
    try:
        return model if isinstance(model, Factors) else model.factors()
    except ModelError:
        return None

"""FedMMF's presets, and the rows of its tables."""

import pytest

from fedmf.errors import SettingError
from fedmf.masks import FMMask, MeanMask, NNMask, RidgeMask
from fedmf.masks.recipes import recipe
from fedmf.models import PRESETS

KINDS = {"ridge": RidgeMask, "fm": FMMask, "nn": NNMask, "mean": MeanMask}


@pytest.mark.parametrize("kind", KINDS)
def test_recipe_is_a_mask_and_a_preset(kind):
    paper, large, fast = (recipe(kind, name) for name in ("paper", "large", "fast"))
    assert isinstance(paper.mask, KINDS[kind])
    assert (paper.offset, paper.preset.model.start) == (False, "zero-mean")
    assert (large.offset, large.preset) == (True, PRESETS["large"])
    assert (fast.mask, fast.preset) == (large.mask, PRESETS["fast"])


@pytest.mark.parametrize("name", ["paper", "large", "fast"])
@pytest.mark.parametrize("kind", KINDS)
def test_changed_part_of_a_recipe_changes_no_other(kind, name):
    before = repr(recipe(kind, name))
    changed = recipe(kind, name)
    changed.preset.model.set_params(k=3)
    number = next(one for one, v in changed.mask.get_params().items() if type(v) is float)
    changed.mask.set_params(**{number: 0.75})
    assert repr(changed) != before
    assert repr(recipe(kind, name)) == before


@pytest.mark.parametrize(("mask", "preset"), [("tree", "fast"), ("ridge", "best")])
def test_unknown_names_raise_with_the_known_ones(mask, preset):
    with pytest.raises(SettingError, match=r"'tree' .* ridge, |'best' .* fast, "):
        recipe(mask, preset)

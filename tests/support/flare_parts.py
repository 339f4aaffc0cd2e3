"""Parts of jobs that FLARE's own processes import: a trainer, and a model in a file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.abstract.model import ModelLearnable, make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.utils.fl_model_utils import FLModelUtils


class StepTrainer(Executor):
    """Trainer of site-i, which adds i/8 in i steps.

    Parameters
    ----------
    lost : str
        Name of the site that is lost while it trains.
    parent : bool
        Kill the parent of that process, too, as if the machine were lost.
    """

    def __init__(self, lost: str = "", parent: bool = False) -> None:
        super().__init__()
        self.lost, self.parent = lost, parent

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        site = fl_ctx.get_identity_name()
        if site == self.lost:
            if self.parent:
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        number = int(site.partition("-")[2])
        model = FLModelUtils.from_shareable(shareable)
        params = {k: v + np.asarray(number / 8, v.dtype) for k, v in model.params.items()}
        meta = {"NUM_STEPS_CURRENT_ROUND": number}
        result = FLModel(params=params, params_type=ParamsType.FULL, meta=meta)
        return FLModelUtils.to_shareable(result)


class FileModel(ModelPersistor):
    """Model of `length` zeros in two arrays; each round's model is a file in `folder`."""

    def __init__(self, folder: str, length: int = 1000) -> None:
        super().__init__()
        self.folder, self.length, self.saved = folder, length, 0

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        arrays = {"w": np.zeros(self.length, np.float32), "b": np.zeros((2, 3))}
        return make_model_learnable(arrays, {})

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        self.saved += 1
        unfinished = Path(self.folder, "unfinished.npz")
        np.savez(unfinished, **model["weights"])
        unfinished.rename(Path(self.folder, f"round{self.saved}.npz"))

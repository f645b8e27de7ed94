"""Torch modules on an accelerator: only those that no row can make fail there.

On the processor a row on which a module raises is found by halving its block, and counts zero. On an accelerator some
failures are for good: an index out of range ends the whole context, and every later row would fail because of one. That one
row would then change what everybody else contributes. So a module is moved only if, on public rows of every shape that it
will be called with, all it does is made of operations that end well whatever the numbers are (``SAFE``: products, sums,
element-wise functions, normalisation, pooling, other views). None of them hands a number to Python, and none may bring one
back to the host; so the module's own code cannot branch on a row, and what was seen on public rows is what is done on all.

Anything else (embeddings, indexing, compiled or scripted modules) stays on the processor, without a word, and so does a
module whose outputs there differ by more than last bits (convolutions in TF32). Last bits may differ: a question asks all
its rows in one place, in blocks of one shape, and whether a row's bits depend on it alone is probed in that place.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Floats

FEWEST_PARAMETERS = 2**12
"""Of modules with fewer, a block takes no longer on a core than on its way there and back (benchmarks/scale_gpu.py)."""

_PRODUCTS = """addmm mm bmm baddbmm matmul linear mv addmv convolution cudnn_convolution _convolution mkldnn_convolution"""
_ELEMENTWISE = """add sub rsub mul div neg abs reciprocal sqrt rsqrt square pow exp exp2 expm1 log log2 log10 log1p sin
cos tan sinh cosh tanh asinh acosh atanh atan atan2 asin acos erf erfc floor ceil round trunc frac sign fmod remainder
clamp clamp_min clamp_max minimum maximum fmin fmax where lerp addcmul addcdiv hypot logaddexp nan_to_num eq ne lt le gt
ge logical_and logical_or logical_not logical_xor isnan isinf isfinite bitwise_and bitwise_or bitwise_not relu gelu
sigmoid silu mish elu selu celu leaky_relu hardtanh hardsigmoid hardswish softplus log_sigmoid_forward threshold prelu
_prelu_kernel hardshrink softshrink add_ sub_ mul_ div_ neg_ exp_ tanh_ relu_ sigmoid_ silu_ clamp_ clamp_min_
clamp_max_ leaky_relu_ hardtanh_ elu_"""
_OVER_A_ROW = """sum mean amax amin prod var std var_mean std_mean linalg_vector_norm logsumexp argmax argmin max min
any all cumsum cumprod _softmax _log_softmax _safe_softmax native_layer_norm native_group_norm native_batch_norm
cudnn_batch_norm _native_batch_norm_legit_no_training _fused_rms_norm max_pool2d_with_indices max_pool3d_with_indices
avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_max_pool2d _scaled_dot_product_flash_attention
_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention _scaled_dot_product_attention_math
_scaled_dot_product_flash_attention_for_cpu _native_multi_head_attention _transformer_encoder_layer_fwd"""
_MOVING = """t transpose permute view _unsafe_view reshape expand slice select unsqueeze squeeze cat stack split
split_with_sizes unbind detach alias clone _to_copy copy_ repeat constant_pad_nd flip roll zeros ones zeros_like
ones_like full full_like scalar_tensor arange lift_fresh lift_fresh_copy new_zeros new_ones new_full fill fill_ zero_
tril triu empty"""
SAFE = frozenset(" ".join((_PRODUCTS, _ELEMENTWISE, _OVER_A_ROW, _MOVING)).split())
"""Operations of torch that no number can make fail: products, functions of each number, sums over some, and other views."""


def moved(module: Any, device: str, inputs: Sequence[Floats]) -> Any | None:
    """A copy of a module on a device; None where it has to stay on the processor.

    Parameters
    ----------
    module : torch.nn.Module
        In evaluation mode.
    device : str
        "cuda", "cuda:1", ...; "torch" is the processor, for tests.
    inputs : arrays
        Public rows, one array for every number of rows that it will be called with.
    """
    torch = importlib.import_module("torch")
    # where the compiler was never loaded, nothing is compiled
    compiled = getattr(sys.modules.get("torch._dynamo.eval_frame"), "OptimizedModule", torch.jit.ScriptModule)
    if any(isinstance(part, torch.jit.ScriptModule | compiled) for part in module.modules()):
        return None
    sizes = [parameter.numel() for parameter in module.parameters()]
    if device != "torch" and sum(sizes) < FEWEST_PARAMETERS:
        return None
    try:
        there = copy.deepcopy(module).to("cpu" if device == "torch" else device).eval()
        return there if all(_is_safe(there, rows, device) for rows in inputs) else None
    except Exception:  # it cannot be copied, or does something that there is nothing for over there
        return None


def run(module: Any, matrix: Floats, device: str) -> Any:
    """A module's output, without gradients, for inputs in the precision of its parameters."""
    torch = importlib.import_module("torch")
    dtypes = [parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()]
    dtype = dtypes[0] if dtypes else torch.float32
    with torch.no_grad():
        if device in ("cpu", "torch"):
            return module(torch.from_numpy(np.ascontiguousarray(matrix)).to(dtype))
        # narrowed by NumPy, which wakes no threads: half as much to send
        narrow = matrix.astype(np.float32) if dtype == torch.float32 else np.ascontiguousarray(matrix)
        return module(torch.from_numpy(narrow).to(device).to(dtype))


def _is_safe(module: Any, matrix: Floats, device: str) -> bool:
    """Whether a call does nothing but ``SAFE`` operations, and leaves all numbers where they are."""
    torch = importlib.import_module("torch")
    modes = importlib.import_module("torch.utils._python_dispatch")
    tree_leaves = importlib.import_module("torch.utils._pytree").tree_leaves
    where = torch.device("cpu" if device == "torch" else device)
    place = where.type
    strange: list[str] = []

    def on(some: object) -> set[str]:
        return {one.device.type for one in tree_leaves(some) if isinstance(one, torch.Tensor)}

    class Watch(modes.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            space, _, name = func._schema.name.partition("::")
            # constants may be made on the host, but what is made of rows stays where they are
            leaves = not on(result) <= {place} and place in on((args, kwargs))
            if space != "aten" or name not in SAFE or leaves:
                strange.append(name)
            return result

    dtypes = [parameter.dtype for parameter in module.parameters() if parameter.is_floating_point()]
    rows = torch.from_numpy(np.ascontiguousarray(matrix)).to(where, dtypes[0] if dtypes else torch.float32)
    with torch.no_grad(), Watch():
        module(rows)
    return not strange

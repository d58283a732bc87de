"""Views to tokens: a convolutional stem, or a SigLIP-shaped transformer; (image_size / patch_size)² tokens each."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from errors import UserError
from model_core.policies.pi05.blocks import RmsNorm
from model_core.specs import PolicySpec

SIGLIP_HEAD_DIM = 64


class ConvStem(nn.Module):
    """3x3 convolutions with stride 2 until one cell is a patch; neighbours see each other's edges."""

    def __init__(self, spec: PolicySpec) -> None:
        super().__init__()
        num_halvings = spec.patch_size.bit_length() - 1
        if spec.patch_size != 2**num_halvings or num_halvings == 0:
            raise UserError(
                "POLICY-001",
                f"a conv stem halves: patch_size {spec.patch_size} is no power of two",
                where="policy.patch_size",
                next_step="use 2, 4, 8, 16 or 32",
            )
        widths = [3, *(max(8, spec.vision_width >> left) for left in range(num_halvings - 1, 0, -1)), spec.vision_width]
        convs = [nn.Conv2d(a, b, kernel_size=3, stride=2, padding=1) for a, b in pairwise(widths)]
        for conv in convs:
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            if conv.bias is not None:
                nn.init.zeros_(conv.bias)
        self.convs = nn.ModuleList(convs)
        self.norm = RmsNorm(spec.vision_width)

    def forward(self, pixels_ICHW: Tensor) -> Tensor:
        """(I, 3, S, S) in [-1, 1] to (I, L, vision_width)."""
        x = self.convs[0](pixels_ICHW)
        for conv in self.convs[1:]:
            x = conv(F.gelu(x, approximate="tanh"))
        return self.norm(x.flatten(2).transpose(1, 2))


class SiglipLayer(nn.Module):
    """One pre-norm transformer layer with biases and LayerNorms, as SigLIP's."""

    def __init__(self, width: int, num_heads: int, mlp_ratio: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, mlp_ratio * width), nn.Linear(mlp_ratio * width, width)

    def forward(self, x_ILD: Tensor) -> Tensor:
        heads = self.qkv(self.norm1(x_ILD)).unflatten(-1, (3, self.num_heads, -1)).transpose(1, 3)
        q, k, v = heads.unbind(2)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x_ILD = x_ILD + self.out(mixed)
        return x_ILD + self.down(F.gelu(self.up(self.norm2(x_ILD)), approximate="tanh"))


class Siglip(nn.Module):
    """Patches, learnt positions, `vision_depth` layers, a norm."""

    def __init__(self, spec: PolicySpec) -> None:
        super().__init__()
        width = spec.vision_width
        num_heads = max(1, width // SIGLIP_HEAD_DIM)
        if width % num_heads or spec.vision_depth < 1:
            raise UserError(
                "POLICY-002",
                f"siglip needs vision_depth ≥ 1 and a vision_width that {num_heads} heads "
                f"divide, not {spec.vision_depth} and {width}",
                where="policy.vision_width",
            )
        self.patches = nn.Conv2d(3, width, kernel_size=spec.patch_size, stride=spec.patch_size)
        self.position = nn.Parameter(torch.randn(spec.tokens_per_view, width) * 0.02)
        self.layers = nn.ModuleList(SiglipLayer(width, num_heads, spec.mlp_ratio) for _ in range(spec.vision_depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, pixels_ICHW: Tensor) -> Tensor:
        """(I, 3, S, S) in [-1, 1] to (I, L, vision_width)."""
        x = self.patches(pixels_ICHW).flatten(2).transpose(1, 2) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Vision(nn.Module):
    """A tower and its projection to the prefix; which slot a view has, and where a patch lies, is added."""

    def __init__(self, spec: PolicySpec) -> None:
        super().__init__()
        if spec.inputs.image_size % spec.patch_size:
            raise UserError(
                "POLICY-003",
                f"patches of {spec.patch_size} pixels do not tile images of {spec.inputs.image_size}",
                where="policy.patch_size",
            )
        self.tower = ConvStem(spec) if spec.vision == "conv" else Siglip(spec)
        self.project = nn.Linear(spec.vision_width, spec.prefix_width)
        self.view = nn.Parameter(torch.randn(len(spec.inputs.views), 1, spec.prefix_width) * 0.02)
        self.patch = nn.Parameter(torch.randn(spec.tokens_per_view, spec.prefix_width) * 0.02)

    def forward(self, images_IHWC: Tensor, image_view: Tensor) -> Tensor:
        """uint8 (I, S, S, 3) and their slots (I,) to tokens (I, L, D)."""
        # channels stay last in memory: the convolutions take them as they lie
        pixels_ICHW = images_IHWC.permute(0, 3, 1, 2).to(self.view.dtype).mul(2 / 255).sub(1)
        return self.project(self.tower(pixels_ICHW)) + self.patch + self.view[image_view]

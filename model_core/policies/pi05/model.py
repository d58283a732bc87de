"""The π0.5-shaped policy: a prefix of views and text, a suffix of noisy actions, two attention calls per layer.

The prefix sees itself; each draw of the suffix sees its sample's prefix and itself. Flow time as in openpi: t = 1
is noise, x_t = t * noise + (1 - t) * action, and the network learns the velocity noise - action.
"""

import math

import torch
from torch import Tensor, nn

from lookup import lookup
from model_core.attention import ATTENTION
from model_core.attention.segments import Attend, Segments
from model_core.policies.pi05.blocks import (
    AdaRmsNorm,
    GatedMlp,
    KeysValues,
    Projections,
    RmsNorm,
    rotation_table,
)
from model_core.policies.pi05.layout import PrefixLayout, SuffixLayout, assemble_prefix, join
from model_core.policies.pi05.vision import Vision
from model_core.specs import PolicySpec
from model_core.types import TorchBatch

KeyValue = tuple[Tensor, Tensor]  # keys and values (T, N_kv, K) of the packed prefix in one layer
Cache = list[KeyValue]  # of every layer

SHORTEST_PERIOD, LONGEST_PERIOD = 4e-3, 4.0  # of the sines that encode flow time


class LanguageLayer(nn.Module):
    """One layer of the prefix."""

    def __init__(self, spec: PolicySpec) -> None:
        super().__init__()
        width = spec.prefix_width
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.attention = Projections(width, spec.num_heads, spec.num_kv_heads, spec.head_dim)
        self.mlp = GatedMlp(width, spec.mlp_ratio)

    def forward(self, x_TD: Tensor, rotation: Tensor, segments: Segments, attend: Attend) -> tuple[Tensor, KeyValue]:
        """The tokens after this layer, and its keys and values."""
        q, k, v = self.attention(self.norm1(x_TD), rotation)
        x_TD = x_TD + self.attention.out(attend(q, k, v, segments, segments).flatten(1))
        return x_TD + self.mlp(self.norm2(x_TD)), (k, v)


class LanguageTail(nn.Module):
    """The prefix in the last layer: the suffix reads its keys and values, and nothing reads its output."""

    def __init__(self, spec: PolicySpec) -> None:
        super().__init__()
        self.norm1 = RmsNorm(spec.prefix_width)
        self.attention = KeysValues(spec.prefix_width, spec.num_kv_heads, spec.head_dim)


class Language(nn.Module):
    """The prefix stream. Its matrices are what an export may quantise."""

    def __init__(self, spec: PolicySpec, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, spec.prefix_width)
        nn.init.normal_(self.embed.weight, std=spec.prefix_width**-0.5)
        self.layers = nn.ModuleList(LanguageLayer(spec) for _ in range(spec.depth - 1))
        self.tail = LanguageTail(spec)

    def words(self, text_X: Tensor) -> Tensor:
        """Token ids (X,) to (X, D), scaled up by sqrt(D) as in Gemma."""
        return self.embed(text_X) * self.embed.embedding_dim**0.5

    def forward(self, x_TD: Tensor, rotation: Tensor, segments: Segments, attend: Attend) -> Cache:
        """Keys and values of every layer."""
        cache: Cache = []
        for layer in self.layers:
            x_TD, keys_values = layer(x_TD, rotation, segments, attend)
            cache.append(keys_values)
        cache.append(self.tail.attention(self.tail.norm1(x_TD), rotation))
        return cache


class ExpertLayer(nn.Module):
    """One layer of the action expert; time scales, shifts and gates it."""

    def __init__(self, spec: PolicySpec) -> None:
        super().__init__()
        width = spec.suffix_width
        self.norm1, self.norm2 = AdaRmsNorm(width), AdaRmsNorm(width)
        self.attention = Projections(width, spec.num_heads, spec.num_kv_heads, spec.head_dim)
        self.mlp = GatedMlp(width, spec.mlp_ratio)

    def forward(
        self,
        x_MHD: Tensor,
        time_MD: Tensor,
        seen: KeyValue,
        rotation: Tensor,
        prefix: PrefixLayout,
        suffix: SuffixLayout,
        attend: Attend,
    ) -> Tensor:
        """The suffix (M, H, D) after this layer; `seen` are the prefix's keys and values in the same layer."""
        normed, gate = self.norm1(x_MHD, time_MD)
        q, k, v = self.attention(normed, rotation)
        keys, values = (join(prefix, suffix, before, own) for before, own in zip(seen, (k, v), strict=True))
        mixed = attend(q.flatten(0, 1), keys, values, suffix.segments, suffix.joint)
        x_MHD = torch.addcmul(x_MHD, gate, self.attention.out(mixed.flatten(1).unflatten(0, x_MHD.shape[:2])))
        normed, gate = self.norm2(x_MHD, time_MD)
        return torch.addcmul(x_MHD, gate, self.mlp(normed))


class ActionExpert(nn.Module):
    """The suffix stream: noisy actions and time in, velocity out."""

    def __init__(self, spec: PolicySpec, action_dim: int) -> None:
        super().__init__()
        width = spec.suffix_width
        self.actions_in = nn.Linear(action_dim, width)
        self.time_in, self.time_out = nn.Linear(width, width), nn.Linear(width, width)
        self.layers = nn.ModuleList(ExpertLayer(spec) for _ in range(spec.depth))
        self.norm = AdaRmsNorm(width)
        self.actions_out = nn.Linear(width, action_dim)

    def embed_time(self, time_M: Tensor) -> Tensor:
        """Flow times (M,) in [0, 1] to (M, D)."""
        waves = encode_time(time_M, self.time_in.in_features).to(self.time_in.weight.dtype)
        return nn.functional.silu(self.time_out(nn.functional.silu(self.time_in(waves))))

    def forward(
        self,
        x_MHA: Tensor,
        time_M: Tensor,
        cache: Cache,
        rotation: Tensor,
        prefix: PrefixLayout,
        suffix: SuffixLayout,
        attend: Attend,
    ) -> Tensor:
        """Velocity (M, H, A) of M = samples x draws chunks."""
        time_MD = self.embed_time(time_M)
        x_MHD = self.actions_in(x_MHA)
        for layer, seen in zip(self.layers, cache, strict=True):
            x_MHD = layer(x_MHD, time_MD, seen, rotation, prefix, suffix, attend)
        normed, _ = self.norm(x_MHD, time_MD)
        return self.actions_out(normed)


class Pi05(nn.Module):
    """Weights and mathematics of the policy; it knows normalised tensors only.

    proprio_dim, action_dim: P and A. vocabulary: number of text tokens. attention: a name in ATTENTION.
    """

    def __init__(
        self, spec: PolicySpec, *, proprio_dim: int, action_dim: int, vocabulary: int, attention: str = "sdpa_segments"
    ) -> None:
        super().__init__()
        self.spec = spec
        self.attend = lookup(ATTENTION, attention, "attention")
        self.vision = Vision(spec)
        self.language = Language(spec, vocabulary)
        self.state = nn.Linear(proprio_dim, spec.prefix_width) if spec.inputs.state == "token" else None
        self.action = ActionExpert(spec, action_dim)
        inputs = spec.inputs
        longest = len(inputs.views) * spec.tokens_per_view + inputs.max_text_tokens + 1 + spec.action_horizon
        self.rotations: Tensor
        self.register_buffer("rotations", rotation_table(longest, spec.head_dim), persistent=False)

    @staticmethod
    def is_language(name: str) -> bool:
        """Whether a parameter is a matrix of the language part: what FP8 exports quantise (not the embedding)."""
        return name.startswith(("language.layers.", "language.tail.")) and ".norm" not in name

    def loss(self, batch: TorchBatch, noise_NKHA: Tensor, time_NK: Tensor) -> Tensor:
        """(N,) losses: squared error of the velocity, mean over draws, over dims and over the steps that the mask
        leaves. Noise, times and losses are in the loader's order. All draws share one pass over the prefix.
        """
        if batch.actions_NHA is None or batch.action_mask_NH is None:
            raise ValueError("a batch without actions has no loss")
        device, dtype = batch.proprio_NP.device, batch.proprio_NP.dtype
        noise_NKHA = noise_NKHA.to(device, dtype)[batch.order]
        t_NK11 = time_NK.to(device, dtype)[batch.order][..., None, None]
        actions_N1HA = batch.actions_NHA[:, None]
        x_NKHA = t_NK11 * noise_NKHA + (1 - t_NK11) * actions_N1HA
        suffix = SuffixLayout.of(batch.layout, noise_NKHA.shape[1], noise_NKHA.shape[2])
        cache = self.read_prefix(batch)
        found_MHA = self.velocity(x_NKHA.flatten(0, 1), t_NK11.flatten(), cache, batch.layout, suffix)
        error_NKHA = found_MHA.view_as(noise_NKHA) - (noise_NKHA - actions_N1HA)
        mask_NH = batch.action_mask_NH.to(dtype)
        error_NH = error_NKHA.square().mean(dim=(1, 3))
        losses_N = (error_NH * mask_NH).sum(1) / mask_NH.sum(1)
        return torch.empty_like(losses_N).index_copy(0, batch.order, losses_N)

    @torch.no_grad()
    def act(self, batch: TorchBatch, noise_BHA: Tensor, denoise_steps: int) -> Tensor:
        """Normalised actions (B, H, A) from noise, by Euler steps from t = 1 to t = 0; the prefix is read once."""
        dtype = batch.proprio_NP.dtype
        x_BHA = noise_BHA.to(batch.proprio_NP.device, dtype)[batch.order]
        suffix = SuffixLayout.of(batch.layout, 1, x_BHA.shape[1])
        cache = self.read_prefix(batch)
        for step in range(denoise_steps):
            time_B = torch.full((len(x_BHA),), 1.0 - step / denoise_steps, device=x_BHA.device, dtype=dtype)
            x_BHA = x_BHA - self.velocity(x_BHA, time_B, cache, batch.layout, suffix) / denoise_steps
        return torch.empty_like(x_BHA).index_copy(0, batch.order, x_BHA)

    def read_prefix(self, batch: TorchBatch) -> Cache:
        """Keys and values of views, text and state in every layer. Views that do not exist cost nothing."""
        layout = batch.layout
        text_XD = self.language.words(batch.text_X)
        if len(batch.images_IHWC):
            views_ILD = self.vision(batch.images_IHWC, batch.image_view).to(text_XD.dtype)
        else:
            views_ILD = text_XD.new_zeros((0, self.spec.tokens_per_view, text_XD.shape[-1]))
        state_ND = None if self.state is None else self.state(batch.proprio_NP)
        tokens_TD = assemble_prefix(layout, views_ILD, text_XD, state_ND)
        return self.language(tokens_TD, self._rotation(layout.positions_T), layout.segments, self.attend)

    def velocity(
        self, x_MHA: Tensor, time_M: Tensor, cache: Cache, prefix: PrefixLayout, suffix: SuffixLayout
    ) -> Tensor:
        """The field at (x_MHA, time_M): noise - action (M, H, A)."""
        return self.action(x_MHA, time_M, cache, self._rotation(suffix.positions_MH), prefix, suffix, self.attend)

    def _rotation(self, positions: Tensor) -> Tensor:
        return torch.view_as_complex(self.rotations.float()[positions]).unsqueeze(-2)


def encode_time(time_M: Tensor, width: int) -> Tensor:
    """Sines and cosines (M, width) with periods from 0.004 to 4, geometrically spaced (openpi)."""
    share = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float32, device=time_M.device)
    periods = SHORTEST_PERIOD * (LONGEST_PERIOD / SHORTEST_PERIOD) ** share
    angles = time_M.float()[:, None] * (2 * math.pi / periods)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)

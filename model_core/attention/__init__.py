"""Attention between packed segments without masks: which implementations there are.

Each is a function `attend(q_TNK, k_TNK, v_TNK, q_segments, k_segments) -> o_TNK`: segment i of q sees all of
segment i of k and v, and nothing else. k and v may have fewer heads, each shared by a group of q's heads.
A segment without keys gives zeros.
"""

ATTENTION = {
    "reference": "model_core.attention.reference:attend",
    "sdpa_segments": "model_core.attention.sdpa_segments:attend",
    "torch_varlen": "model_core.attention.torch_varlen:attend",
    "flash_attn": "model_core.attention.flash_attn:attend",
}

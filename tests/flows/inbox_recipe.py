"""A recipe whose robot is the cart of the small recordings in tests/data_lake."""

from dataclasses import replace

from data_lake.specs import ReadSpec
from flows.recipes.gr1 import RECIPE as GR1
from model_core.embodiments import Embodiment

CART = Embodiment(
    name="cart",
    cameras=("front",),
    state_names=("x", "y", "z"),
    action_names=("dx", "dy"),
    state_units=("m", "m", "1"),
    action_units=("m", "m"),
    control_hz=10.0,
    delta_mask=(False, False),
    action_from_state=(0, 1),
    action_low=None,
    action_high=None,
)
RECIPE = replace(
    GR1,
    name="cart",
    ingest=replace(
        GR1.ingest, dataset="cart", embodiment="tests.flows.inbox_recipe:CART", read=ReadSpec(action_mode="absolute")
    ),
    preprocess=replace(GR1.preprocess, heldout_episodes=(2,)),
    policy=replace(GR1.policy, inputs=replace(GR1.policy.inputs, views=("front",))),
)
NAME = "tests.flows.inbox_recipe:RECIPE"

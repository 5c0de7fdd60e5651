"""A language and a speech decoder from PyTorch, each trained in a minute, with the loop of
greedy decoding inside the exported model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import openvino as ov
import torch
from openvino._offline_transformations import apply_moc_transformations
from torch import Tensor, nn
from torch.nn import functional

from loopscope_samples.recipes.names import name_ports, name_weights, readable
from loopscope_samples.recipes.recipe import InputSet, Recipe
from loopscope_samples.recipes.spoken_digits import BANDS, DIGITS, END, START, spoken, transcripts
from loopscope_samples.recipes.words import LETTERS, STOP, encoded, padded

WIDTH, HEADS, LAYERS, LONGEST = 24, 2, 2, 16
BATCH, STEPS = 64, 1500


class Attention(nn.Module):
    """Attention of new places to all that keys and values are kept of."""

    __constants__ = ("heads", "size")

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.size = HEADS, WIDTH // HEADS
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.key = nn.Linear(WIDTH, WIDTH, bias=False)
        self.value = nn.Linear(WIDTH, WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def split(self, data: Tensor) -> Tensor:
        return data.reshape(data.shape[0], data.shape[1], self.heads, self.size).transpose(1, 2)

    def keys(self, data: Tensor) -> Tensor:
        return self.split(self.key(data))

    def values(self, data: Tensor) -> Tensor:
        return self.split(self.value(data))

    def forward(self, data: Tensor, keys: Tensor, values: Tensor, hidden: Tensor) -> Tensor:
        """``hidden``: added to the scores, minus a lot where a place may not look."""
        scores = (
            torch.matmul(self.split(self.query(data)), keys.transpose(2, 3)) * self.size**-0.5
            + hidden
        )
        seen = torch.matmul(torch.softmax(scores, -1), values)
        return self.out(
            seen.transpose(1, 2).reshape(data.shape[0], data.shape[1], self.heads * self.size)
        )


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, data: Tensor) -> Tensor:
        return data * torch.rsqrt((data * data).mean(-1, keepdim=True) + 1e-5) * self.weight


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, data: Tensor) -> Tensor:
        return self.down(functional.silu(self.up(data)))


def later_hidden(new: Tensor, past: int) -> Tensor:
    """The scores' addend that keeps each new place from seeing those after it."""
    rows = torch.arange(new.shape[1]).unsqueeze(1) + past
    columns = torch.arange(new.shape[1] + past).unsqueeze(0)
    return (columns > rows).to(torch.float32) * -10000.0


class LanguageModel(nn.Module):
    """A decoder of letters, with keys and values kept from one step to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.norm_0, self.attention_0, self.norm_1, self.mlp_0 = Norm(), Attention(), Norm(), Mlp()
        self.norm_2, self.attention_1, self.norm_3, self.mlp_1 = Norm(), Attention(), Norm(), Mlp()
        self.norm_4 = Norm()

    def step(
        self, letters: Tensor, keys_0: Tensor, values_0: Tensor, keys_1: Tensor, values_1: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        past = keys_0.shape[2]
        hidden = later_hidden(letters, past)
        data = self.embed(letters) + self.places(torch.arange(letters.shape[1]) + past)
        normed = self.norm_0(data)
        keys_0 = torch.cat([keys_0, self.attention_0.keys(normed)], 2)
        values_0 = torch.cat([values_0, self.attention_0.values(normed)], 2)
        data = data + self.attention_0(normed, keys_0, values_0, hidden)
        data = data + self.mlp_0(self.norm_1(data))
        normed = self.norm_2(data)
        keys_1 = torch.cat([keys_1, self.attention_1.keys(normed)], 2)
        values_1 = torch.cat([values_1, self.attention_1.values(normed)], 2)
        data = data + self.attention_1(normed, keys_1, values_1, hidden)
        data = data + self.mlp_1(self.norm_3(data))
        return (
            functional.linear(self.norm_4(data), self.embed.weight),
            keys_0,
            values_0,
            keys_1,
            values_1,
        )

    def forward(self, prompt: Tensor, most_letters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Letter after letter until the model says that the word ends; the first iteration reads
        the whole prompt.
        """
        keys_0 = torch.zeros([1, 2, 0, 12])
        values_0 = torch.zeros([1, 2, 0, 12])
        keys_1 = torch.zeros([1, 2, 0, 12])
        values_1 = torch.zeros([1, 2, 0, 12])
        letters = prompt
        word = prompt.reshape(-1)
        certainty = torch.zeros([0])
        steps = torch.zeros([], dtype=torch.int64)
        while bool((steps < most_letters) & (word[-1] != 0)):
            logits, keys_0, values_0, keys_1, values_1 = self.step(
                letters, keys_0, values_0, keys_1, values_1
            )
            chances = torch.softmax(logits[:, -1], -1)
            best, letters = torch.max(chances, -1, keepdim=True)
            word = torch.cat([word, letters.reshape(-1)])
            certainty = torch.cat([certainty, best.reshape(-1)])
            steps = steps + 1
        return word, certainty, steps


class SpeechModel(nn.Module):
    """Hears frames of sound, and writes the digits that were spoken."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_0 = nn.Conv1d(BANDS, WIDTH, 3, padding=1)
        self.conv_1 = nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.heard_places = nn.Embedding(4 * LONGEST, WIDTH)
        self.norm_0, self.attention_0, self.norm_1, self.mlp_0 = Norm(), Attention(), Norm(), Mlp()
        self.norm_2 = Norm()
        self.embed = nn.Embedding(DIGITS + 2, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.norm_3, self.attention_1, self.norm_4, self.crossing = (
            Norm(),
            Attention(),
            Norm(),
            Attention(),
        )
        self.norm_5, self.mlp_1, self.norm_6 = Norm(), Mlp(), Norm()

    def hear(self, sound: Tensor) -> Tensor:
        """The encoder: [batch, frames, bands] to [batch, frames / 2, width]."""
        data = functional.gelu(
            self.conv_1(functional.gelu(self.conv_0(sound.transpose(1, 2))))
        ).transpose(1, 2)
        data = data + self.heard_places(torch.arange(data.shape[1]))
        normed = self.norm_0(data)
        data = data + self.attention_0(
            normed, self.attention_0.keys(normed), self.attention_0.values(normed), torch.zeros([1])
        )
        return self.norm_2(data + self.mlp_0(self.norm_1(data)))

    def step(
        self, digits: Tensor, keys: Tensor, values: Tensor, heard_keys: Tensor, heard_values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        past = keys.shape[2]
        data = self.embed(digits) + self.places(torch.arange(digits.shape[1]) + past)
        normed = self.norm_3(data)
        keys = torch.cat([keys, self.attention_1.keys(normed)], 2)
        values = torch.cat([values, self.attention_1.values(normed)], 2)
        data = data + self.attention_1(normed, keys, values, later_hidden(digits, past))
        data = data + self.crossing(self.norm_4(data), heard_keys, heard_values, torch.zeros([1]))
        data = data + self.mlp_1(self.norm_5(data))
        return functional.linear(self.norm_6(data), self.embed.weight), keys, values

    def forward(self, sound: Tensor, most_digits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The encoder once, then digit after digit until the model says that nothing more was
        spoken.
        """
        heard = self.hear(sound)
        heard_keys = self.crossing.keys(heard)
        heard_values = self.crossing.values(heard)
        keys = torch.zeros([1, 2, 0, 12])
        values = torch.zeros([1, 2, 0, 12])
        digit = torch.zeros([1, 1], dtype=torch.int64) + 11
        digits = torch.zeros([0], dtype=torch.int64)
        certainty = torch.zeros([0])
        steps = torch.zeros([], dtype=torch.int64)
        while bool((steps < most_digits) & (digit[0, 0] != 10)):
            logits, keys, values = self.step(digit, keys, values, heard_keys, heard_values)
            best, digit = torch.max(torch.softmax(logits[:, -1], -1), -1, keepdim=True)
            digits = torch.cat([digits, digit.reshape(-1)])
            certainty = torch.cat([certainty, best.reshape(-1)])
            steps = steps + 1
        return digits, certainty, steps


def recipes() -> list[Recipe]:
    return [_language(), _speech()]


def _language() -> Recipe:
    torch.manual_seed(3)
    model = LanguageModel()
    letters = torch.tensor(padded())
    nothing = torch.zeros([len(letters), HEADS, 0, WIDTH // HEADS])

    def loss() -> Tensor:
        logits = model.step(letters[:, :-1], nothing, nothing, nothing, nothing)[0]
        # The first letter cannot be known; what stands behind the end of a word means nothing.
        known = letters[:, :-1] != STOP
        return functional.cross_entropy(logits[known], letters[:, 1:][known])

    _train(model, loss, STEPS // 3)
    prompts = {"one_letter": ("l", 12), "three_letters": ("ite", 12), "whole_word": ("scan", 12)}
    prompts |= {"cut_short": ("re", 3), "unknown_word": ("zq", 12)}
    sets = {
        name: {"prompt": encoded(prompt), "most_letters": np.int64(most)}
        for name, (prompt, most) in prompts.items()
    }
    signature = {"prompt": ("i64", [1, -1]), "most_letters": ("i64", [])}
    return _recipe(
        "language_decoder",
        model,
        signature,
        ("word", "certainty", "steps"),
        sets,
        "for_each_letter",
    )


def _speech() -> Recipe:
    torch.manual_seed(5)
    model = SpeechModel()
    random = np.random.default_rng(5)

    def loss() -> Tensor:
        said = transcripts(random, BATCH)
        sound, written = torch.tensor(spoken(random, said)), torch.tensor(said)
        heard = model.hear(sound)
        nothing = torch.zeros([BATCH, HEADS, 0, WIDTH // HEADS])
        first = torch.full([BATCH, 1], START)
        read = torch.cat([first, written[:, :-1]], 1)
        logits = model.step(
            read, nothing, nothing, model.crossing.keys(heard), model.crossing.values(heard)
        )[0]
        known = read != END
        return functional.cross_entropy(logits[known], written[known])

    _train(model, loss, STEPS)
    heard = {
        "three_digits": ([3, 1, 4], 12),
        "five_digits": ([2, 7, 1, 8, 2], 12),
        "silence": ([], 12),
        "cut_short": ([1, 6, 1, 8], 2),
    }
    sets = {
        name: {"sound": spoken(random, np.array([[*said, END]])), "most_digits": np.int64(most)}
        for name, (said, most) in heard.items()
    }
    signature = {"sound": ("f32", [1, -1, BANDS]), "most_digits": ("i64", [])}
    return _recipe(
        "speech_decoder", model, signature, ("digits", "certainty", "steps"), sets, "for_each_digit"
    )


def _train(model: nn.Module, loss: Callable[[], Tensor], steps: int) -> None:
    torch.set_num_threads(1)  # small matrices: threads would only wait for each other
    optimiser = torch.optim.Adam(model.parameters(), 4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, steps)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()


def _recipe(
    name: str,
    model: nn.Module,
    signature: Mapping,
    outputs: tuple[str, ...],
    sets: Mapping[str, InputSet],
    loop: str,
) -> Recipe:
    inputs = [
        (ov.PartialShape(shape), getattr(ov.Type, kind)) for kind, shape in signature.values()
    ]
    converted = ov.convert_model(torch.jit.script(model.eval()), input=inputs)
    apply_moc_transformations(converted, cf=True)
    weights = {key: weight.detach().numpy() for key, weight in model.named_parameters()}
    return Recipe(
        name,
        readable(name_weights(name_ports(converted, outputs), weights), {"prim::Loop/Loop": loop}),
        sets,
    )

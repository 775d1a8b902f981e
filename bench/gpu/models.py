"""The networks of the GPU benchmarks, with random weights: those of torchvision and transformers where they are installed, else
plain definitions of the same layers."""
import torch
from torch import nn


class _Block(nn.Module):
    """A residual block: two 3×3 convolutions, or 1×1, 3×3, 1×1 with four times the channels."""

    def __init__(self, inputs, width, stride, bottleneck):
        super().__init__()
        outputs = width * 4 if bottleneck else width
        shapes = ([(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)] if bottleneck else
                  [(inputs, width, 3, stride), (width, width, 3, 1)])
        layers = []
        for before, after, size, step in shapes:
            layers += [nn.Conv2d(before, after, size, step, size // 2, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Identity() if inputs == outputs and stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def _plain_resnet(depth):
    blocks, bottleneck = {18: ((2, 2, 2, 2), False), 50: ((3, 4, 6, 3), True), 152: ((3, 8, 36, 3), True)}[depth]
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for index in range(count):
            layers.append(_Block(channels, width, 2 if stage and not index else 1, bottleneck))
            channels = width * 4 if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def resnet(depth):
    try:
        from torchvision import models
    except ImportError:
        return _plain_resnet(depth)
    return getattr(models, f"resnet{depth}")(weights=None)


def mobilenet():
    try:
        from torchvision import models
        return models.mobilenet_v2(weights=None)
    except ImportError:
        pass

    def separable(inputs, outputs, stride):
        return [nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs), nn.ReLU6(),
                nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU6()]

    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
    for inputs, outputs, stride in ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2),
                                    *((512, 512, 1),) * 5, (512, 1024, 2), (1024, 1024, 1)):
        layers += separable(inputs, outputs, stride)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


class _PlainBert(nn.Module):
    """BERT-base's shape: 12 layers, 768 wide, 12 heads."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(30522, 768)
        self.positions = nn.Embedding(512, 768)
        self.norm = nn.LayerNorm(768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)

    def forward(self, words):
        places = torch.arange(words.shape[1], device=words.device)
        return self.layers(self.norm(self.tokens(words) + self.positions(places)))


class _Bert(nn.Module):
    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, words):
        return self.bert(words).last_hidden_state


def bert():
    try:
        from transformers import BertConfig, BertModel
    except ImportError:
        return _PlainBert()
    return _Bert(BertModel(BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0), add_pooling_layer=False))


MODELS = {"resnet18": lambda: resnet(18), "resnet50": lambda: resnet(50), "resnet152": lambda: resnet(152),
          "mobilenet": mobilenet, "bert": bert}


def inputs(model, batch, dtype, device):
    """A batch for a model: images of 224 × 224, or 128 words."""
    if model == "bert":
        return torch.randint(0, 30522, (batch, 128), device=device)
    return torch.randn(batch, 3, 224, 224, device=device, dtype=dtype)

"""The figures the paper prints for its four data experiments: mean and standard deviation, by row."""

from __future__ import annotations

from eber.runs.spec import PaperTable

COLORED_MNIST = PaperTable(
    "Table 16",
    {
        "EBER": {
            "nll": (0.519, 0.077),
            "accuracy": (0.787, 0.071),
            "ece": (0.076, 0.021),
            "seconds": (149.269, 37.363),
        },
        "ERM": {"nll": (0.863, 0.090), "accuracy": (0.650, 0.021), "ece": (0.194, 0.027), "seconds": (45.019, 1.007)},
        "IRM": {"nll": (0.572, 0.007), "accuracy": (0.747, 0.017), "ece": (0.101, 0.014), "seconds": (0.041, 0.006)},
        "V-REx": {"nll": (0.605, 0.019), "accuracy": (0.684, 0.011), "ece": (0.081, 0.011), "seconds": (70.164, 0.623)},
        "Fishr": {
            "nll": (0.917, 0.061),
            "accuracy": (0.639, 0.020),
            "ece": (0.207, 0.021),
            "seconds": (101.795, 1.436),
        },
    },
    {"ERM": "0.004", "IRM": "0.203", "V-REx": "0.140", "Fishr": "0.004"},
)

QUASAR = PaperTable(
    "Table 17",
    {
        "EBER": {"nll": (0.221, 0.019), "accuracy": (0.921, 0.007), "ece": (0.048, 0.011), "seconds": (32.282, 0.690)},
        "ERM": {"nll": (0.390, 0.001), "accuracy": (0.897, 0.001), "ece": (0.104, 0.002), "seconds": (4.293, 1.548)},
        "IRM": {"nll": (0.383, 0.009), "accuracy": (0.891, 0.003), "ece": (0.115, 0.006), "seconds": (6.781, 0.490)},
        "V-REx": {"nll": (0.382, 0.009), "accuracy": (0.892, 0.003), "ece": (0.114, 0.005), "seconds": (5.154, 0.271)},
        "Fishr": {"nll": (0.384, 0.004), "accuracy": (0.894, 0.001), "ece": (0.111, 0.002), "seconds": (6.666, 0.227)},
    },
    {"ERM": "< 0.001", "IRM": "< 0.001", "V-REx": "< 0.001", "Fishr": "< 0.001"},
)

MICROBIOME = PaperTable(
    "Table 18",
    {
        "EBER": {"nll": (0.850, 0.112), "accuracy": (0.591, 0.027), "ece": (0.131, 0.050), "seconds": (1.163, 0.076)},
        "ERM": {"nll": (1.685, 0.136), "accuracy": (0.587, 0.016), "ece": (0.287, 0.018), "seconds": (0.242, 0.274)},
        "IRM": {"nll": (1.548, 0.224), "accuracy": (0.588, 0.011), "ece": (0.265, 0.025), "seconds": (0.199, 0.015)},
        "V-REx": {"nll": (0.903, 0.087), "accuracy": (0.571, 0.014), "ece": (0.157, 0.026), "seconds": (0.153, 0.009)},
        "Fishr": {"nll": (1.449, 0.226), "accuracy": (0.582, 0.021), "ece": (0.255, 0.035), "seconds": (0.191, 0.016)},
    },
    {"ERM": "0.002", "IRM": "0.007", "V-REx": "0.543", "Fishr": "0.008"},
)

SEPSIS = PaperTable(
    "Table 19",
    {
        "EBER": {"auroc": (0.740, 0.008), "auprc": (0.179, 0.008), "ece": (0.028, 0.009), "seconds": (43.754, 0.921)},
        "ERM": {"auroc": (0.692, 0.017), "auprc": (0.153, 0.013), "ece": (0.039, 0.004), "seconds": (5.718, 0.348)},
        "IRM": {"auroc": (0.724, 0.012), "auprc": (0.169, 0.012), "ece": (0.023, 0.004), "seconds": (13.422, 0.671)},
        "V-REx": {"auroc": (0.697, 0.012), "auprc": (0.154, 0.011), "ece": (0.029, 0.007), "seconds": (8.814, 0.165)},
        "Fishr": {"auroc": (0.697, 0.014), "auprc": (0.156, 0.008), "ece": (0.039, 0.005), "seconds": (12.690, 0.425)},
    },
    {"ERM": "0.003", "IRM": "0.112", "V-REx": "0.001", "Fishr": "0.002"},
)

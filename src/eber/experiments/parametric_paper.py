"""The figures the paper prints for the parametric simulation: mean and standard deviation, by setting and row."""

from __future__ import annotations

from eber.runs.spec import PaperTable


def _row(*figures: float) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of NLL, accuracy, ECE and seconds, in the order of the paper's columns."""
    names = ("nll", "accuracy", "ece", "seconds")
    return {name: (figures[2 * i], figures[2 * i + 1]) for i, name in enumerate(names)}


PAPER = {
    "baseline": PaperTable(
        'appendix table "Additional results for the parametric simulation with baseline values"',
        {
            "Bayes-x": _row(0.233, 0.004, 0.934, 0.002, 0.002, 0.001, 3.09, 0.379),
            "EBER": _row(0.319, 0.069, 0.928, 0.003, 0.112, 0.078, 18.92, 1.117),
            "ERM": _row(0.652, 0.005, 0.577, 0.009, 0.103, 0.013, 4.373, 0.954),
            "IRM": _row(0.654, 0.006, 0.573, 0.012, 0.086, 0.022, 6.053, 0.789),
            "V-REx": _row(0.64, 0.026, 0.572, 0.016, 0.109, 0.021, 5.008, 0.658),
            "Fishr": _row(0.652, 0.006, 0.582, 0.011, 0.097, 0.01, 5.812, 0.712),
        },
        {"ERM": "0.015", "IRM": "0.015", "V-REx": "0.015", "Fishr": "0.015"},
    ),
    "rho=0.15": PaperTable(
        'appendix table "Sensitivity and ablation results for branch-cue strength: rho = 0.15"',
        {
            "Bayes-x": _row(0.231, 0.004, 0.935, 0.001, 0.002, 0.0, 3.293, 0.414),
            "EBER": _row(0.301, 0.071, 0.935, 0.002, 0.099, 0.082, 17.563, 0.694),
            "ERM": _row(0.62, 0.012, 0.572, 0.016, 0.119, 0.028, 4.304, 0.773),
            "IRM": _row(0.606, 0.028, 0.593, 0.032, 0.115, 0.026, 6.068, 0.966),
            "V-REx": _row(0.58, 0.055, 0.644, 0.097, 0.122, 0.037, 5.173, 0.676),
            "Fishr": _row(0.603, 0.012, 0.602, 0.031, 0.089, 0.033, 6.03, 0.626),
            "EBER (2: uniform test weights)": _row(0.656, 0.015, 0.614, 0.036, 0.152, 0.092, 17.526, 0.67),
            "EBER (3: oracle test weights)": _row(0.292, 0.071, 0.935, 0.001, 0.087, 0.087, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.242, 0.004, 0.935, 0.001, 0.01, 0.004, 136.658, 8.059),
            "EBER 5: oracle posteriors": _row(0.753, 0.083, 0.633, 0.011, 0.325, 0.067, 207.051, 1.671),
            "EBER 6: uniform weights": _row(0.664, 0.009, 0.571, 0.022, 0.064, 0.039, 19.698, 1.036),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.674, 0.009, 0.589, 0.048, 0.092, 0.031, 178.919, 1.296
            ),
        },
        {"ERM": "0.024", "IRM": "0.024", "V-REx": "0.024", "Fishr": "0.024"},
    ),
    "rho=0.2": PaperTable(
        'appendix table "Sensitivity and ablation results for branch-cue strength: rho = 0.20"',
        {
            "Bayes-x": _row(0.231, 0.004, 0.935, 0.001, 0.002, 0.0, 3.335, 0.267),
            "EBER": _row(0.297, 0.067, 0.935, 0.002, 0.095, 0.08, 17.39, 0.678),
            "ERM": _row(0.576, 0.026, 0.626, 0.042, 0.108, 0.056, 4.602, 0.333),
            "IRM": _row(0.551, 0.036, 0.652, 0.048, 0.123, 0.018, 5.946, 0.956),
            "V-REx": _row(0.544, 0.058, 0.692, 0.081, 0.084, 0.026, 5.117, 0.405),
            "Fishr": _row(0.561, 0.032, 0.658, 0.026, 0.093, 0.032, 6.458, 0.686),
            "EBER (2: uniform test weights)": _row(0.657, 0.021, 0.578, 0.066, 0.142, 0.086, 17.677, 0.736),
            "EBER (3: oracle test weights)": _row(0.292, 0.066, 0.935, 0.001, 0.088, 0.081, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.242, 0.003, 0.935, 0.001, 0.011, 0.004, 133.081, 9.282),
            "EBER 5: oracle posteriors": _row(0.753, 0.082, 0.628, 0.021, 0.326, 0.065, 196.114, 4.056),
            "EBER 6: uniform weights": _row(0.65, 0.014, 0.573, 0.011, 0.106, 0.058, 19.06, 0.292),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.666, 0.01, 0.553, 0.066, 0.146, 0.034, 170.055, 0.875
            ),
        },
        {"ERM": "0.026", "IRM": "0.026", "V-REx": "0.026", "Fishr": "0.026"},
    ),
    "m=12": PaperTable(
        'appendix table "Sensitivity and ablation results for number of training environments: m=12"',
        {
            "Bayes-x": _row(0.232, 0.005, 0.935, 0.002, 0.003, 0.002, 3.306, 0.703),
            "EBER": _row(0.254, 0.003, 0.932, 0.002, 0.026, 0.005, 36.465, 1.99),
            "ERM": _row(0.572, 0.015, 0.629, 0.003, 0.099, 0.031, 6.148, 1.002),
            "IRM": _row(0.544, 0.026, 0.663, 0.034, 0.113, 0.032, 11.869, 1.147),
            "V-REx": _row(0.549, 0.051, 0.675, 0.047, 0.119, 0.021, 7.431, 0.218),
            "Fishr": _row(0.527, 0.047, 0.706, 0.07, 0.105, 0.015, 12.114, 0.616),
            "EBER (2: uniform test weights)": _row(0.639, 0.028, 0.594, 0.074, 0.104, 0.001, 37.461, 2.338),
            "EBER (3: oracle test weights)": _row(0.247, 0.004, 0.934, 0.002, 0.016, 0.005, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.242, 0.006, 0.935, 0.002, 0.009, 0.002, 302.468, 5.353),
            "EBER 5: oracle posteriors": _row(0.674, 0.023, 0.593, 0.081, 0.186, 0.071, 638.964, 19.802),
            "EBER 6: uniform weights": _row(0.674, 0.006, 0.573, 0.015, 0.039, 0.016, 37.607, 1.26),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.694, 0.011, 0.573, 0.064, 0.11, 0.014, 519.677, 4.796
            ),
        },
        {"ERM": "0.003", "IRM": "0.006", "V-REx": "0.011", "Fishr": "0.011"},
    ),
    "m=36": PaperTable(
        'appendix table "Sensitivity and ablation results for number of training environments: m=36"',
        {
            "Bayes-x": _row(0.234, 0.005, 0.934, 0.002, 0.003, 0.0, 2.867, 0.036),
            "EBER": _row(0.252, 0.005, 0.932, 0.002, 0.021, 0.003, 173.11, 2.214),
            "ERM": _row(0.265, 0.009, 0.931, 0.004, 0.035, 0.006, 10.531, 0.139),
            "IRM": _row(0.312, 0.007, 0.926, 0.003, 0.105, 0.008, 53.156, 0.952),
            "V-REx": _row(0.296, 0.008, 0.931, 0.002, 0.094, 0.006, 21.215, 0.475),
            "Fishr": _row(0.273, 0.002, 0.93, 0.002, 0.047, 0.007, 39.614, 0.927),
            "EBER (2: uniform test weights)": _row(0.641, 0.016, 0.643, 0.013, 0.097, 0.006, 172.446, 3.578),
            "EBER (3: oracle test weights)": _row(0.249, 0.006, 0.933, 0.002, 0.017, 0.005, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.241, 0.005, 0.934, 0.002, 0.011, 0.002, 1486.899, 45.133),
            "EBER 5: oracle posteriors": _row(0.661, 0.001, 0.639, 0.003, 0.187, 0.057, 4185.989, 205.771),
            "EBER 6: uniform weights": _row(0.673, 0.006, 0.573, 0.041, 0.053, 0.027, 160.284, 0.768),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.688, 0.0, 0.615, 0.011, 0.109, 0.011, 3227.361, 30.513
            ),
        },
        {"ERM": "0.056", "IRM": "0.024", "V-REx": "0.024", "Fishr": "0.035"},
    ),
    "n=1000": PaperTable(
        'appendix table "Sensitivity and ablation results for training examples per environment: n=1000"',
        {
            "Bayes-x": _row(0.233, 0.004, 0.934, 0.002, 0.002, 0.001, 6.09, 0.769),
            "EBER": _row(0.25, 0.006, 0.932, 0.002, 0.019, 0.005, 35.63, 0.307),
            "ERM": _row(0.546, 0.003, 0.665, 0.038, 0.1, 0.038, 8.766, 0.835),
            "IRM": _row(0.544, 0.038, 0.658, 0.027, 0.11, 0.028, 12.393, 0.189),
            "V-REx": _row(0.509, 0.081, 0.74, 0.098, 0.095, 0.007, 9.42, 0.916),
            "Fishr": _row(0.51, 0.031, 0.713, 0.054, 0.126, 0.036, 12.524, 0.18),
            "EBER (2: uniform test weights)": _row(0.654, 0.005, 0.546, 0.055, 0.155, 0.003, 34.958, 0.631),
            "EBER (3: oracle test weights)": _row(0.246, 0.005, 0.933, 0.002, 0.015, 0.004, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.243, 0.005, 0.934, 0.002, 0.006, 0.004, 285.632, 2.888),
            "EBER 5: oracle posteriors": _row(0.662, 0.0, 0.639, 0.001, 0.268, 0.03, 465.074, 9.839),
            "EBER 6: uniform weights": _row(0.681, 0.002, 0.571, 0.005, 0.045, 0.011, 39.347, 0.542),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.688, 0.0, 0.589, 0.057, 0.081, 0.056, 402.842, 8.071
            ),
        },
        {"ERM": "< 0.001", "IRM": "0.007", "V-REx": "0.032", "Fishr": "0.007"},
    ),
    "d=50": PaperTable(
        'appendix table "Sensitivity and ablation results for data dimension: d=50"',
        {
            "Bayes-x": _row(0.234, 0.002, 0.934, 0.001, 0.002, 0.001, 3.438, 0.587),
            "EBER": _row(0.366, 0.101, 0.907, 0.007, 0.126, 0.099, 17.741, 0.333),
            "ERM": _row(0.685, 0.003, 0.57, 0.002, 0.071, 0.001, 3.988, 0.34),
            "IRM": _row(0.688, 0.001, 0.564, 0.003, 0.057, 0.005, 5.992, 0.755),
            "V-REx": _row(0.688, 0.004, 0.561, 0.005, 0.052, 0.006, 5.47, 0.996),
            "Fishr": _row(0.689, 0.0, 0.57, 0.001, 0.077, 0.002, 5.72, 0.314),
            "EBER (2: uniform test weights)": _row(0.666, 0.012, 0.56, 0.02, 0.105, 0.085, 17.809, 0.418),
            "EBER (3: oracle test weights)": _row(0.322, 0.113, 0.932, 0.001, 0.106, 0.13, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.258, 0.008, 0.934, 0.001, 0.028, 0.008, 141.465, 0.622),
            "EBER 5: oracle posteriors": _row(0.758, 0.089, 0.633, 0.009, 0.313, 0.071, 224.025, 3.412),
            "EBER 6: uniform weights": _row(0.673, 0.003, 0.571, 0.003, 0.022, 0.009, 20.482, 0.565),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.687, 0.002, 0.525, 0.044, 0.045, 0.014, 199.823, 1.191
            ),
        },
        {"ERM": "0.035", "IRM": "0.035", "V-REx": "0.035", "Fishr": "0.035"},
    ),
    "d=100": PaperTable(
        'appendix table "Sensitivity and ablation results for data dimension: d=100"',
        {
            "Bayes-x": _row(0.232, 0.001, 0.935, 0.0, 0.003, 0.001, 3.345, 0.401),
            "EBER": _row(0.386, 0.078, 0.882, 0.015, 0.108, 0.069, 19.376, 1.562),
            "ERM": _row(0.734, 0.003, 0.562, 0.006, 0.122, 0.005, 3.921, 0.036),
            "IRM": _row(0.735, 0.014, 0.554, 0.005, 0.118, 0.016, 6.359, 0.714),
            "V-REx": _row(0.726, 0.008, 0.553, 0.005, 0.108, 0.007, 5.38, 0.7),
            "Fishr": _row(0.744, 0.002, 0.558, 0.005, 0.132, 0.001, 6.033, 0.757),
            "EBER (2: uniform test weights)": _row(0.671, 0.008, 0.579, 0.008, 0.057, 0.015, 18.683, 1.345),
            "EBER (3: oracle test weights)": _row(0.31, 0.091, 0.933, 0.002, 0.103, 0.103, 0.0, 0.0),
            "EBER 4: oracle weights": _row(0.277, 0.012, 0.929, 0.005, 0.045, 0.007, 140.905, 1.172),
            "EBER 5: oracle posteriors": _row(0.76, 0.089, 0.636, 0.001, 0.305, 0.08, 226.697, 2.373),
            "EBER 6: uniform weights": _row(0.686, 0.002, 0.561, 0.003, 0.039, 0.008, 20.606, 0.696),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.688, 0.002, 0.529, 0.052, 0.05, 0.022, 197.96, 3.629
            ),
        },
        {"ERM": "0.021", "IRM": "0.021", "V-REx": "0.021", "Fishr": "0.021"},
    ),
    "d=1000": PaperTable(
        'appendix table "Sensitivity and ablation results for data dimension: d=1000"',
        {
            "Bayes-x": _row(0.232, 0.002, 0.934, 0.001, 0.002, 0.001, 3.055, 0.051),
            "EBER": _row(1.773, 0.331, 0.53, 0.008, 0.349, 0.026, 26.296, 0.713),
            "ERM": _row(2.169, 0.076, 0.531, 0.007, 0.378, 0.002, 5.045, 0.509),
            "IRM": _row(2.117, 0.018, 0.532, 0.005, 0.377, 0.006, 7.186, 0.666),
            "V-REx": _row(2.175, 0.051, 0.532, 0.007, 0.379, 0.008, 5.24, 0.129),
            "Fishr": _row(2.144, 0.098, 0.532, 0.007, 0.378, 0.007, 7.724, 0.294),
            "EBER (2: uniform test weights)": _row(1.209, 0.081, 0.529, 0.003, 0.279, 0.027, 25.465, 0.879),
            "EBER (3: oracle test weights)": _row(1.167, 0.144, 0.631, 0.019, 0.24, 0.018, 0.0, 0.0),
            "EBER 4: oracle weights": _row(1.702, 0.228, 0.616, 0.019, 0.298, 0.024, 151.139, 0.521),
            "EBER 5: oracle posteriors": _row(0.748, 0.064, 0.572, 0.005, 0.13, 0.079, 223.441, 2.586),
            "EBER 6: uniform weights": _row(1.97, 0.284, 0.53, 0.006, 0.353, 0.025, 27.924, 0.794),
            "EBER 7: uniform weights and oracle posteriors": _row(
                0.688, 0.003, 0.533, 0.059, 0.056, 0.027, 195.873, 1.272
            ),
        },
        {"ERM": "0.213", "IRM": "0.213", "V-REx": "0.213", "Fishr": "0.213"},
    ),
}

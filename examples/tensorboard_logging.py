"""Every loss term of a fit as a curve in TensorBoard, and a fit that stops when its loss does not fall any more.

Run it with: pip install tensorboard; python examples/tensorboard_logging.py; tensorboard --logdir runs
"""

from __future__ import annotations

from collections.abc import Mapping

from torch.utils.tensorboard import SummaryWriter  # needs the package tensorboard

from eber import EBERClassifier, TablePreprocessor
from eber.datasets.hospitals import draw_hospitals


def main(rows: int = 1200, epochs: int = 50, folder: str = "runs") -> None:
    """Fit EBER on the hospitals, and log each pass."""
    table = draw_hospitals(rows)
    X = TablePreprocessor().fit_transform(table.drop(columns=["sepsis", "hospital"]))
    losses: list[float] = []
    with SummaryWriter(folder) as writer:

        def log(epoch: int, terms: Mapping[str, float]) -> bool:
            for name, value in terms.items():
                writer.add_scalar(name, value, epoch)
            losses.append(terms["loss"])
            return len(losses) > 10 and min(losses[-5:]) > min(losses[:-5])  # True ends the training

        classifier = EBERClassifier(epochs=epochs, random_state=0)
        classifier.fit(X, table["sepsis"], environments=table["hospital"], callback=log)
    print(f"{len(losses)} passes, last loss {losses[-1]:.3f}; see them with: tensorboard --logdir {folder}")


if __name__ == "__main__":
    main()

"""Compile the kernels that most tests use, so that Numba's cache holds them before several processes start."""

from belated import FTRL, lab
from belated.serve.process.run import warm_up
from belated.tunings import Shadow, Tsallis


def main() -> None:
    warm_up()
    FTRL(2, seed=0).ask(size=2)
    for tuning in (Tsallis(), Shadow()):
        for delays in (lab.NoDelay(), lab.LostByArm(lab.NoDelay(), [0, 0])):
            lab.play(tuning, lab.Problem(lab.Bernoulli(), delays, n_arms=2, n_rounds=2), [0])


if __name__ == "__main__":
    main()

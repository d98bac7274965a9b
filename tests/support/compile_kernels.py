"""Compile the kernels that most tests use, so that Numba's cache holds them before several processes start."""

from belated import kernels, lab
from belated.tunings import Shadow, Tsallis
from belated.warming import use_every_kernel


def main() -> None:
    kernels.use_tier("compiled")
    use_every_kernel()
    for tuning in (Tsallis(), Shadow()):
        for delays in (lab.NoDelay(), lab.LostByArm(lab.NoDelay(), [0, 0])):
            lab.play(tuning, lab.Problem(lab.Bernoulli(), delays, n_arms=2, n_rounds=2), [0])


if __name__ == "__main__":
    main()

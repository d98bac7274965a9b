"""A learning-rate rule of your own. The certificate holds for any rule that never decreases and uses only delays."""

import math

import belated


class Cautious(belated.tunings.Tuning):
    """Counts every outstanding round twice."""

    def rates(self, n_arms: int, round: int, outstanding: int, backlog: int) -> tuple[float, float]:
        """alpha_t = sqrt(t), beta_t = sqrt(4 D_t / ln k)."""
        return math.sqrt(round), math.sqrt(4 * backlog / math.log(n_arms))


delays = [50] * 10_000
for tuning in (belated.tunings.Simple(), Cautious()):
    print(f"{tuning!r:60.60} certificate {belated.bounds.certificate(4, delays, tuning):7.1f}")

learner = belated.FTRL(4, Cautious(), seed=1)
learner.tell(learner.ask().round, 0.5)

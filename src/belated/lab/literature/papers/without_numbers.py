"""Papers without numbers to compare with, and why."""

from belated.lab.literature.games import Played
from belated.lab.literature.records import Case, Paper
from belated.lab.problems.bernoulli import Bernoulli
from belated.lab.problems.delays import Unbalanced
from belated.lab.problems.problem import Problem

THUNE_2019 = Paper(
    name="thune-2019",
    citation="T. S. Thune, N. Cesa-Bianchi, Y. Seldin. Nonstochastic Multiarmed Bandits with Unrestricted Delays. "
    "NeurIPS 2019",
    settings="The first floor(sqrt(k n / ln k)) reports come only at the end, the others at once. The losses and the "
    "size are chosen here",
    read="The example as Zimmert & Seldin 2020 tell it (Section 1). It has bounds of order n^(3/4) and n^(1/2), and no "
    "measurement. `belated paper --only unbalanced` measures the exponents",
    cases=(
        Case(
            name="thune-2019",
            title="unbalanced delays",
            game=Played(Problem(Bernoulli(gap=0.5), Unbalanced(), 10, 32_000)),
            systems=("zs20-simple", "zs20-advanced", "means"),
        ),
    ),
)
JOULANI_2013 = Paper(
    name="joulani-2013",
    citation="P. Joulani, A. Gyorgy, C. Szepesvari. Online Learning under Delayed Feedback. ICML 2013",
    settings="none",
    read="The whole paper",
    note="it has no experiments. Its systems are in the lab as bold, delayed-ucb1 and qpm-d",
)
VERNADE_2017 = Paper(
    name="vernade-2017",
    citation="C. Vernade, O. Cappe, V. Perchet. Stochastic Bandit Models for Delayed Conversions. UAI 2017",
    settings="10,000 rounds, geometric delays of mean 500, conversions cut off after 1,000 rounds, best rate 0.1",
    read="A summary of the paper, whose Section 7 has the experiments",
    note="the rates of the other arms could not be read, and the numbers are only in its Figures 1 and 2",
)
VERNADE_2020_LINEAR = Paper(
    name="vernade-2020-linear",
    citation="C. Vernade, A. Carpentier, T. Lattimore, G. Zappella, B. Ermis, M. Brueckner. Linear Bandits with "
    "Stochastic Delayed Feedback. ICML 2020",
    settings="10 new action vectors in dimension 5 in each round, 3,000 rounds, geometric delays of mean 100 or 500",
    read="Section 8",
    note="its arms are vectors that change in each round, and the lab's learners see no contexts",
)
VERNADE_2020_STATES = Paper(
    name="vernade-2020-nonstationary",
    citation="C. Vernade, A. Gyorgy, T. A. Mann. Non-Stationary Delayed Bandits with Intermediate Observations. ICML "
    "2020",
    settings="unknown",
    read="The abstract",
    note="its experiments could not be read, and the lab's learners see no intermediate observations",
)

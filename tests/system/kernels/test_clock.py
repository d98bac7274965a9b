"""The clock against Algorithm 2 as the paper writes it, on thousands of sequences."""

from tests.kernels.test_clock import assert_equals_the_literal_algorithm_2


def test_equals_the_literal_algorithm_2_on_thousands_of_sequences() -> None:
    assert_equals_the_literal_algorithm_2(sequences=4000)

"""`lab.plan` with several processes."""

from belated import lab


def test_processes_do_not_change_the_results() -> None:
    wanted = lab.PlanSettings(2, base_rate=0.3, difference=0.4, per_day=100, delay=3600, most=500, games=4)
    one, two = lab.plan(wanted), lab.plan(wanted, workers=2)
    assert one.as_data() == two.as_data()
    assert [row.endings for row in one.rows] == [row.endings for row in two.rows]

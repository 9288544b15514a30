"""The table that keeps job statistics and costs fails, with dice of its own: it must neither stop nor change a pass or a metric."""

from math import inf
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from autoscaler.domain.facts.job_settings import MonthCosts
from autoscaler.domain.report.costs import in_month
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Kind


class JobStatisticsFail(RuleBasedStateMachine):
    """The rules about that table, for a world that has the others."""

    @rule(share=st.sampled_from([0.0, 0.2, 0.5, 1.0]))
    def the_job_statistics_begin_to_fail(self, share):
        self.jobs_share = share

    def fail_job_statistics(self, seed):
        """Let calls fail before or after they took effect, by dice of their own: those of other calls fall as without this."""
        chance = Random(seed)
        self.jobs_share, self.function_now, self.is_state_lost = 0.0, None, False

        def dice(call):
            if chance.random() >= self.jobs_share:
                return None
            self.happened["calls about job statistics that failed"] += 1
            return Fault(call, after=chance.random() < 0.5, status=chance.choice([0, 0, 503]), code="Unavailable")

        def nobody_else_asks(call):
            # A person who orders runs does: they take place where they would end soonest.
            assert self.function_now not in {"scale_up", "scale_down"}, f"{call}: no pass reads or writes what is known of jobs"

        for faults in (self.fleet.jobs.faults, self.fleet.costs.faults):
            faults.dice, faults.meanwhile = dice, nobody_else_asks

    def run_beside_failing_statistics(self, function):
        """Run a function: whatever stops it, it is not that table; and where nothing else fails, metrics go out."""
        self.function_now, told = function.__name__, len(self.fleet.metrics.published)
        try:
            function()
        except AutoscalerError as error:
            assert not str(error).startswith(("jobs ", "costs "))
            assert self.function_now != "publish_metrics" or self.fleet.faults.dice, f"metrics were stopped by {error!r}"
        else:
            assert self.function_now != "publish_metrics" or len(self.fleet.metrics.published) > told
        finally:
            self.function_now = None

    def no_build_is_counted_twice(self):
        """Whatever failed: of each job no more builds are known than ran. A pipeline's step may be seen again after a restart."""
        for row in self.fleet.jobs.kept.values():
            if row.subject.signature or row.subject.job.endswith("/*"):
                continue
            controller = self.world.controllers[row.controller]
            ran = [build for build in controller.builds_of.get(row.subject.job, []) if build.started_at is not None]
            again = controller._sessions
            most = sum(again if build.kind is Kind.PIPELINE else 1 for build in ran)
            assert row.runs <= most, f"{row.subject.job} in {row.pool}: {row.runs} builds of {most}"

    def every_dollar_is_somebodys(self):
        """Whatever failed: all jobs together, with what was idle, cost what was metered; more, where that was lost and began again."""
        costs, metered = self.fleet.costs, self.fleet.state.memory.month
        if costs.kept.month == metered.name:
            month = in_month(costs.months.get(metered.name, MonthCosts(name=metered.name)), costs.kept, metered)
            total = sum(one.usd for one in month.used.values()) + sum(month.unused.values())
            most = inf if self.is_state_lost else metered.usd
            assert metered.usd - 1e-6 < total < most + 1e-6, f"${total} is not ${metered.usd}"

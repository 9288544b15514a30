"""The same for what ordered runs rest on: each change loses an order, starts it anew, or takes what goes on for ended."""

from planted.bug import Bug

_STORE, _STOPPED = (f"tests/contract/{file}.py::test_" for file in ("test_run_orders", "test_stopped_builds"))
_KEPT, _BUILDS = "adapters/run_orders.py", "adapters/jenkins/builds.py"


def planted(name: str, *, file: str, was: str, becomes: str, found_by: str) -> Bug:
    return Bug(name=name, file=file, was=was, becomes=becomes, found_by=(found_by,))


ORDERED = (
    planted(
        "whoever changes an order last overwrites what another one wrote",
        file=_KEPT,
        was='"ConditionExpression": "version = :version"',
        becomes='"ConditionExpression": "attribute_exists(fleet) OR version = :version"',
        found_by=f"{_STORE}of_two_who_change_an_order_only_the_first_does",
    ),
    planted(
        "an order that has ended is ordered anew under its id",
        file=_KEPT,
        was=', {"ConditionCheck": not_ended})',
        becomes=")",
        found_by=f"{_STORE}of_two_orders_with_one_id_the_second_is_refused_though_the_first_has_ended",
    ),
    planted(
        "an open order is forgotten as an ended one is",
        file=_KEPT,
        was="        if changed.ended_at is None:\n",
        becomes="        if False:\n",
        found_by=f"{_STORE}a_change_is_of_the_next_version_and_says_so",
    ),
    planted(
        "a transaction that is cancelled for want of capacity counts as a lost race",
        file=_KEPT,
        was='code_of(error) == "TransactionConflictException" or',
        becomes="True or",
        found_by=f"{_STORE}an_error_of_dynamodb_is_one_that_the_next_look_makes_good",
    ),
    planted(
        "a login page that answers a stop counts as the page of the build",
        file=_BUILDS,
        was="if led and not f",
        becomes="if False and not f",
        found_by=f"{_STOPPED}a_login_page_that_answers_a_stop_has_stopped_nothing",
    ),
    planted(
        "an item that has left the queue is cancelled again and again",
        file=_BUILDS,
        was="            return state is ItemState.CANCELLED\n",
        becomes="            raise\n",
        found_by=f"{_STOPPED}an_item_is_cancelled_once_and_what_has_left_is_not",
    ),
    planted(
        "an error page of a proxy counts as an item that has left",
        file=_BUILDS,
        was="error.status != requests.codes.internal_server_error or ",
        becomes="",
        found_by=f"{_STOPPED}a_cancel_for_which_jenkins_fails_is_judged_by_what_became_of_the_item_and_a_proxys_error_page_not_at_all",
    ),
    planted(
        "a build that this account may not stop counts as stopped",
        file=_BUILDS,
        was='            raise RefusedBuildError(f"Jenkins does not stop {path}: {error}") from error\n',
        becomes="            return\n",
        found_by=f"{_STOPPED}an_account_without_job_cancel_is_told_so_for_whatever_it_may_not_do",
    ),
)

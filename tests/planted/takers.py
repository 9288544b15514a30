"""Known ways to be wrong about which node may take an item."""

from planted.bug import Bug

_PROPERTY = "tests/properties/test_may_take.py"
_SAYS = f"{_PROPERTY}::test_the_product_says_which_nodes_may_take_an_item_as_jenkins_does_if"
_OF_ITS_POOL = "next((one.labels for one in want.pools if one.name == taker.pool), taker.labels)"

TAKERS = (
    Bug(
        name="an agent may take what the labels of its pool satisfy, whatever labels it has itself",
        function="may_take",
        was="return want.expression.matches(taker.labels)",
        becomes=f"return want.expression.matches({_OF_ITS_POOL})",
        found_by=(f"{_SAYS}[its job tells the label]",),
    ),
    Bug(
        name="a job that excludes a node by its name may start there",
        function="may_take",
        was="return want.expression.matches(taker.labels)",
        becomes="return want.expression.matches(taker.labels - {taker.name})",
        found_by=(f"{_SAYS}[its job tells the label]",),
    ),
    Bug(
        name="a beacon takes jobs",
        function="Fleet.is_beacon",
        was='return node == self.beacon or node.startswith(f"{self.beacon}~")',
        becomes="return False",
        found_by=(f"{_SAYS}[Jenkins names the label]",),
    ),
)

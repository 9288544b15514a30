"""What happens to the images of pools: a parameter names another one, which boots or never does."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from autoscaler_workbench.fakes.world.ec2.account import image_of
from support.machine_fleet import IMAGE_PARAMETERS
from support.remembered import tables


class ImagesChange(RuleBasedStateMachine):
    """The rules about images, for a world that has the others."""

    def name_images(self):
        """Let a parameter name the image of each pool; of a broken one instances run, and nothing on them ever asks who it is."""
        self.broken, self.published = set(), 0
        for pool in IMAGE_PARAMETERS:
            self._publish(pool, boots=True)
        asks = self.world.ec2.on_running
        self.world.ec2.on_running = lambda instance: None if instance.image in self.broken else asks(instance)

    @precondition(lambda self: self.names_images)
    @rule(pool=st.sampled_from(tuple(IMAGE_PARAMETERS)), boots=st.booleans(), minutes=st.integers(0, 20))
    def a_parameter_names_another_image(self, pool, boots, minutes):
        self._publish(pool, boots=boots)
        self.minutes(minutes)

    @precondition(lambda self: self.names_images)
    @rule(pool=st.sampled_from(tuple(IMAGE_PARAMETERS)), minutes=st.integers(1, 20))
    def a_parameter_is_gone_for_a_while(self, pool, minutes):
        named = self.world.ec2.account.parameters.pop(IMAGE_PARAMETERS[pool])
        self.minutes(minutes)
        self.world.ec2.account.parameters[IMAGE_PARAMETERS[pool]] = named

    def every_pool_boots_again(self):
        """Let whoever made a broken image mend it, where the fleet knows no other that boots: then no job would ever be done."""
        for pool, parameter in IMAGE_PARAMETERS.items():
            if self.world.ec2.account.parameters[parameter] in self.broken and self._proven_image(pool) in {*self.broken, ""}:
                self._publish(pool, boots=True)

    def _proven_image(self, pool):
        return tables(self.fleet.state.memory).proven.get(pool, "").partition(" with ")[2]

    def _publish(self, pool, *, boots):
        self.published += 1
        image = f"ami-{self.published}"
        account = self.world.ec2.account
        account.images[image], account.parameters[IMAGE_PARAMETERS[pool]] = image_of("linux", ImageId=image), image
        if not boots:
            self.broken.add(image)

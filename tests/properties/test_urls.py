"""Whatever jobs are named: their URLs are plain ASCII, and what is read from them is the name."""

from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.adapters.jenkins.parse import job_of, run_of
from autoscaler_workbench.fakes.world.jenkins.urls import job_path

NAMES = st.lists(st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=4).map(
    "/".join
)


@given(NAMES, st.integers(1, 10**6), st.sampled_from(["", "http://j/", "https://jenkins.example.org/ci/"]))
def test_a_job_is_read_from_its_url_and_from_its_runs(name, number, base):
    url = f"{base}{job_path(name)}"
    assert url.isascii()
    assert urlsplit(url).geturl() == url
    assert (urlsplit(url).query, urlsplit(url).fragment) == ("", "")
    assert job_of(url) == job_of(f"{url}{number}/") == name
    assert run_of(f"{url}{number}/") == f"{job_path(name)}{number}"


@given(st.text(max_size=60))
def test_any_url_is_read(url):
    assert isinstance(job_of(url), str)
    assert isinstance(run_of(url), str)

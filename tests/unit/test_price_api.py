"""Prices from the AWS Price List API, as its documentation shows them. Nothing here has run against AWS."""

import json

import pytest

from autoscaler_workbench.maintenance.price_api import listed_prices
from autoscaler_workbench.maintenance.prices import TARGET, text_of, with_regions


def a_product(kind="c7i.large", usd="0.0892500000", unit="Hrs", currency="USD", **facts):
    """A product as `GetProducts` lists one: text of JSON."""
    dimension = {"unit": unit, "beginRange": "0", "endRange": "Inf", "appliesTo": [], "pricePerUnit": {currency: usd}}
    term = {"priceDimensions": {"SKU.JRTCKXETXF.6YS6EN2CT7": dimension}, "sku": "SKU", "effectiveDate": "2026-11-01T00:00:00Z"}
    attributes = {"instanceType": kind, "regionCode": "eu-west-1", "tenancy": "Shared", "capacitystatus": "Used"}
    product = {
        "product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": "SKU"},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {"SKU.JRTCKXETXF": term}},
        "version": "20261113170102",
        "publicationDate": "2026-11-13T17:01:02Z",
    }
    return json.dumps(product | facts)


class Pricing:
    """The API with these pages for each operating system."""

    def __init__(self, **pages):
        self.pages = pages
        self.asked = []

    def get_paginator(self, name):
        assert name == "get_products"
        return self

    def paginate(self, **request):
        wanted = {one["Field"]: one["Value"] for one in request["Filters"]}
        self.asked.append(wanted)
        return [{"PriceList": page} for page in self.pages.get(wanted["operatingSystem"], [])]


def test_each_page_of_a_region_and_system_is_read():
    client = Pricing(Linux=[[a_product()], [a_product("g6.xlarge", "0.8981000000")]])
    told = [tuple(one) for one in listed_prices(client, "eu-west-1", "linux")]
    assert told == [("c7i.large", 0.08925, "2026-11-13"), ("g6.xlarge", 0.8981, "2026-11-13")]
    [asked] = client.asked
    assert asked["tenancy"] == "Shared"
    assert (asked["regionCode"], asked["capacitystatus"], asked["preInstalledSw"]) == ("eu-west-1", "Used", "NA")


@pytest.mark.parametrize(
    "product",
    [
        a_product(usd="0.0000000000"),
        a_product(unit="Quantity"),
        a_product(currency="CNY"),
        a_product("m5"),
        a_product(terms={"Reserved": {}}),
    ],
    ids=["costs nothing", "no hours", "no dollars", "a host's family", "only reserved"],
)
def test_what_is_no_price_of_a_machine_an_hour_is_left_out(product):
    assert list(listed_prices(Pricing(Linux=[[product]]), "eu-west-1", "linux")) == []


def test_a_region_takes_its_place_beside_the_others_with_its_day():
    carried = json.loads(TARGET.read_text(encoding="utf-8"))
    client = Pricing(Linux=[[a_product()]], RHEL=[[a_product(usd="0.1500000000")]], Windows=[[a_product(usd="0.1732500000")]])
    after = json.loads(with_regions(carried, client, ["eu-west-1"]))
    assert after["usd_per_hour"]["eu-west-1"] == {"c7i.large": {"linux": 0.08925, "windows": 0.17325, "rhel": 0.15}}
    assert after["listed_on"]["eu-west-1"] == dict.fromkeys(("linux", "windows", "rhel"), "2026-11-13")
    assert after["usd_per_hour"]["us-east-1"] == carried["usd_per_hour"]["us-east-1"]


def test_a_region_of_which_nothing_is_listed_changes_nothing():
    with pytest.raises(SystemExit, match="eu-west-9: AWS lists no prices of it"):
        with_regions(json.loads(TARGET.read_text(encoding="utf-8")), Pricing(), ["eu-west-9"])


def test_the_carried_table_is_as_it_is_written():
    carried = json.loads(TARGET.read_text(encoding="utf-8"))
    assert text_of(carried["about"], carried["listed_on"], carried["usd_per_hour"]) == TARGET.read_text(encoding="utf-8")

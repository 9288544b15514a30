"""On-demand prices from the AWS Price List API, by region and operating system.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html. Written from AWS' documentation of the API
and of the price list's format; it has never run against AWS.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

SYSTEMS = {"linux": "Linux", "windows": "Windows", "rhel": "RHEL", "suse": "SUSE"}
# Shared machines without a reservation, without a database on them, with the licence included.
_WANTED = {"tenancy": "Shared", "capacitystatus": "Used", "preInstalledSw": "NA", "licenseModel": "No License required"}


class Listed(NamedTuple):
    """One price: dollars an hour on demand, and the day on which AWS listed it."""

    instance_type: str
    usd_per_hour: float
    listed_on: str


def listed_prices(client: Any, region: str, system: str) -> Iterator[Listed]:
    """Ask page by page; ``client``: boto3's of ``pricing``, which answers in us-east-1 for all regions."""
    wanted = _WANTED | {"regionCode": region, "operatingSystem": SYSTEMS[system]}
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    for page in client.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", FormatVersion="aws_v1", Filters=filters):
        for text in page["PriceList"]:
            yield from _read(json.loads(text))


def _read(product: dict[str, Any]) -> Iterator[Listed]:
    """Read one product: of its dimensions the one of hours, in dollars. A reservation that is not used costs nothing as such."""
    kind = product["product"]["attributes"].get("instanceType", "")
    for term in product["terms"].get("OnDemand", {}).values():
        for dimension in term["priceDimensions"].values():
            usd = float(dimension["pricePerUnit"].get("USD", 0.0))
            if dimension["unit"] == "Hrs" and usd > 0.0 and "." in kind:
                yield Listed(kind, usd, str(product["publicationDate"])[:10])

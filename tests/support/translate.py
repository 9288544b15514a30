"""Run by the interpreter that the SAM command line lives in: a template in, what CloudFormation is given after the transform out."""

import json
import sys

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

# SAM names them, and CloudFormation attaches them: the names are AWS' own.
_MANAGED = {
    name: f"arn:aws:iam::aws:policy/service-role/{name}" for name in ("AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole")
}


def translated(text: str) -> dict:
    """The template after the transform; code is taken to be uploaded already."""
    template = yaml_parse(text)
    for resource in template["Resources"].values():
        for place in ("CodeUri", "ContentUri"):
            if place in resource.get("Properties", {}):
                resource["Properties"][place] = "s3://bucket/key"
    return Translator(_MANAGED, Parser()).translate(template, {})


if __name__ == "__main__":
    json.dump(translated(sys.stdin.read()), sys.stdout)

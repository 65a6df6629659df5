"""The CDK app: `cdk synth -c stage=local|sandbox|prod`. If a stage needs more values, the error names them."""

from stacks.application import main

if __name__ == "__main__":
    main()

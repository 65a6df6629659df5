"""The CDK app: `cdk synth -c stage=local|sandbox|prod`. What a stage needs besides, it says itself."""

from stacks.application import main

if __name__ == "__main__":
    main()

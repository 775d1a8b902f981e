"""Networks are defined and never made."""


class Module:
    pass

"""Money: integer minor units with an ISO 4217 code."""

# Active codes by their number of decimals (ISO 4217, list one). The provider refuses some of them. ISK, UGX and MGA are
# left out: the provider counts them in other units than ISO, and would charge 100 times too much or too little. https://docs.stripe.com/currencies#special-cases
_DECIMALS = {
    0: "BIF CLP DJF GNF JPY KMF KRW PYG RWF VND VUV XAF XOF XPF",
    2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP "
    "CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR "
    "JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN "
    "NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP "
    "SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG",
    3: "BHD IQD JOD KWD LYD OMR TND",
}

DECIMALS: dict[str, int] = {code: decimals for decimals, codes in _DECIMALS.items() for code in codes.split()}

# The provider's limits for one charge: https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts
# A charge that is converted must also reach the minimum of the settlement currency. Only the provider can check that.
_SMALLEST = {
    "AED": 200, "AUD": 50, "BGN": 100, "BRL": 50, "CAD": 50, "CHF": 50, "CZK": 1500, "DKK": 250, "EUR": 50, "GBP": 30,
    "HKD": 400, "HUF": 17500, "INR": 50, "JPY": 50, "MXN": 1000, "MYR": 200, "NOK": 300, "NZD": 50, "PLN": 200,
    "RON": 200, "SEK": 300, "SGD": 50, "THB": 1000, "USD": 50,
}  # fmt: skip
_LARGEST = {"IDR": 999_999_999_999}
MAX_AMOUNT = max(_LARGEST.values())  # of any currency


def smallest_charge(currency: str) -> int:
    """Return the smallest amount that the provider charges in a currency, in minor units."""
    return _SMALLEST.get(currency, 1)


def largest_charge(currency: str) -> int:
    """Return the largest amount that the provider charges in a currency, in minor units."""
    return _LARGEST.get(currency, 99_999_999)


def format_amount(amount: int, currency: str) -> str:
    """Format an amount for people: `25.00 EUR`, `2500 JPY`."""
    decimals = DECIMALS[currency]
    if decimals == 0:
        return f"{amount} {currency}"
    units, rest = divmod(amount, 10**decimals)
    return f"{units}.{rest:0{decimals}d} {currency}"

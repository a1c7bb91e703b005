-- TPC-DS Q65: items that a store sells for a tenth of its average item at most.
select s_store_name, i_item_desc, sc.revenue, i_current_price, i_wholesale_cost, i_brand
from store, item,
  (select ss_store_sk, avg(revenue) as ave
   from (
     select ss_store_sk, ss_item_sk, sum(ss_sales_price) as revenue
     from store_sales, date_dim
     where ss_sold_date_sk = d_date_sk
       and d_month_seq between 1176 and 1176 + 11
     group by ss_store_sk, ss_item_sk) as sa
   group by ss_store_sk) as sb,
  (select ss_store_sk, ss_item_sk, sum(ss_sales_price) as revenue
   from store_sales, date_dim
   where ss_sold_date_sk = d_date_sk
     and d_month_seq between 1176 and 1176 + 11
   group by ss_store_sk, ss_item_sk) as sc
where sb.ss_store_sk = sc.ss_store_sk
  and sc.revenue <= 0.1 * sb.ave
  and s_store_sk = sc.ss_store_sk
  and i_item_sk = sc.ss_item_sk
order by s_store_name, i_item_desc, sc.revenue, i_current_price, i_wholesale_cost, i_brand
limit 100
